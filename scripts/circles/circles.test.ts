import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeCircle, findCircles } from './findCircles.ts'
import { readImports } from './readImports.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'countersign-circles-'))
})
afterEach(() => {
  rmSync(root, { recursive: true })
})

/** The circles of a made-up tree of files, as they are printed. */
function check(files: Record<string, string>): string[] {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return findCircles(readImports(root)).map(describeCircle)
}

test('files that import each other one way are no circle', () => {
  const files = {
    'a.ts': "import { b } from './b.ts'\nimport { c } from './folder/c.tsx'\n",
    'b.ts': "import type { C } from './folder/c.tsx'\nexport const b = 1\n",
    'folder/c.tsx': 'export type C = 1\nexport const c = <br />\n',
    'a.test.ts': "import './a.ts'\n",
  }
  expect(check(files)).toEqual([])
  expect(readImports(root)).toHaveLength(4)
})

test('values in a circle', () => {
  const files = {
    'a.ts': "import { b } from './b.ts'\nexport const a = 1\n",
    'b.ts': "\nimport a, { a as first } from './a.ts'\nexport const b = 1\n",
  }
  expect(check(files)).toEqual(['a.ts → b.ts → a.ts\n  a.ts:1 imports b\n  b.ts:2 imports default, a'])
})

test('types in a circle, in every way to import one', () => {
  const files = {
    'a.ts': "import type { B } from './b.ts'\nexport type A = 1\n",
    'b.ts': "import { type C, c } from './c.ts'\nexport type B = 1\n",
    'c.ts': "export type C = import('./d.ts').D\nexport const c = 1\n",
    'd.ts': "export type { A } from './a.ts'\nexport type D = 1\n",
  }
  expect(check(files)).toEqual([
    [
      'a.ts → b.ts → c.ts → d.ts → a.ts',
      'a.ts:1 imports type B',
      'b.ts:1 imports type C, c',
      'c.ts:1 imports type import()',
      'd.ts:1 imports type A',
    ].join('\n  '),
  ])
})

test('a file that imports itself', () => {
  expect(check({ 'a.ts': "import type { A } from './a.ts'\nexport type A = 1\n" })).toEqual([
    'a.ts → a.ts\n  a.ts:1 imports type A',
  ])
})

test('re-exports in a circle', () => {
  const files = {
    'folder/index.ts': "export * from './a.ts'\nexport { b as c } from '../b.ts'\n",
    'folder/a.ts': 'export const a = 1\n',
    'b.ts': "export * as all from './folder/index.ts'\nexport const b = 1\n",
  }
  expect(check(files)).toEqual(['b.ts → folder/index.ts → b.ts\n  b.ts:1 imports *\n  folder/index.ts:2 imports b'])
})

test('imports at run time, and for their effects alone, count too', () => {
  const files = {
    'a.ts': "const { b } = await import('./b.ts')\n",
    'b.ts': "import './a.ts'\nexport const b = 1\n",
  }
  expect(check(files)).toEqual(['a.ts → b.ts → a.ts\n  a.ts:1 imports import()\n  b.ts:1 imports nothing'])
})

test('a circle through the names of packages', () => {
  const entry = (name: string) => JSON.stringify({ source: `./src/${name}.ts`, default: `./dist/${name}.js` })
  const files = {
    'packages/one/package.json': `{ "name": "@countersign/one", "exports": { ".": ${entry('index')} } }`,
    'packages/one/src/index.ts': "export { one } from './one.ts'\n",
    'packages/one/src/one.ts': "import { two } from '@countersign/two/deep'\nexport const one = 1\n",
    'packages/two/package.json': `{ "name": "@countersign/two", "exports": { "./deep": ${entry('deep')} } }`,
    'packages/two/src/deep.ts': "import type { One } from '@countersign/one'\nexport const two = 1\n",
  }
  expect(check(files)).toEqual([
    [
      'packages/one/src/index.ts → packages/one/src/one.ts → packages/two/src/deep.ts → packages/one/src/index.ts',
      'packages/one/src/index.ts:1 imports one',
      'packages/one/src/one.ts:1 imports two',
      'packages/two/src/deep.ts:1 imports type One',
    ].join('\n  '),
  ])
})

test('each circle of a knot is there once, and every import of a circle is in one of them', () => {
  const files = {
    'a.ts': "import './b.ts'\nimport './c.ts'\n",
    'b.ts': "import './a.ts'\n",
    'c.ts': "import './b.ts'\nimport './a.ts'\n",
  }
  const circles = check(files).map((circle) => circle.split('\n')[0])
  expect(circles).toEqual(['a.ts → b.ts → a.ts', 'a.ts → c.ts → a.ts', 'a.ts → c.ts → b.ts → a.ts'])
})

test('text that looks like an import is none, and neither is a comment', () => {
  const files = {
    'a.ts': [
      "// import './a.ts'",
      "/** import { a } from './a.ts' */",
      'const code = `',
      "import './a.ts'",
      '`',
      "const pattern = /import '.\\/a.ts'/",
      '',
    ].join('\n'),
  }
  expect(check(files)).toEqual([])
})

test('other people’s code, builds, and files that are not there or hold no code are left out', () => {
  const files = {
    'a.ts': "import 'b'\nimport './gone.ts'\nimport data from './data.json' with { type: 'json' }\nimport 'node:fs'\n",
    'data.json': '{}',
    'node_modules/b/package.json': '{ "name": "b", "exports": { ".": { "source": "./index.ts" } } }',
    'node_modules/b/index.ts': "import './index.ts'\n",
    'packages/c/dist/index.mjs': "import './index.mjs'\n",
    '.cache/d.ts': "import './d.ts'\n",
  }
  expect(check(files)).toEqual([])
  expect(readImports(root)).toEqual([])
})

test('a file that cannot be parsed is an error, not a file without imports', () => {
  expect(() => check({ 'a.ts': "import { from './a.ts'\n" })).toThrow('a.ts cannot be parsed')
})
