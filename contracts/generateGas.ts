// Writes gas.json: node -C source contracts/generateGas.ts

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { measureGas } from './measureGas.ts'

const path = join(import.meta.dirname, 'gas.json')
writeFileSync(path, `${JSON.stringify(await measureGas(), null, 2)}\n`)
