// Fails when source files of the repository import each other in a circle, type imports included:
//   node scripts/checkCircles.ts
// A circle of types breaks no start, but none of its files can be understood, tested or moved without the others.

import { join } from 'node:path'
import { describeCircle, findCircles } from './circles/findCircles.ts'
import { readImports } from './circles/readImports.ts'

const imports = readImports(join(import.meta.dirname, '..'))
const circles = findCircles(imports)
for (const circle of circles) console.error(`${describeCircle(circle)}\n`)
const files = new Set(imports.map(({ from }) => from)).size
console.log(`${imports.length} imports in ${files} files, ${circles.length} circles`)
process.exitCode = circles.length > 0 ? 1 : 0
