import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createCases } from './createCases.ts'

const folder = import.meta.dirname

test('the kit’s files equal the output of the code, which agrees with the specification’s test files', async () => {
  const files = await createCases()
  for (const [path, content] of files) {
    expect([path, readFileSync(join(folder, path)).equals(Buffer.from(content))]).toEqual([path, true])
  }
  const names = readdirSync(join(folder, 'files')).map((name) => `files/${name}`)
  expect(names.filter((name) => !files.has(name))).toEqual([])
})
