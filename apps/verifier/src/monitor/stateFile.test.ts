import { readdir, readFile } from 'node:fs/promises'
import { createLogsMemory } from '@countersign/verify'
import { expect, test } from 'vitest'
import { createFolder } from '../../test/folder.ts'
import { writeState } from '../files.ts'

test('does not write a state that is too large to read back', async () => {
  const folder = await createFolder({ 'state.json': 'old' })
  await expect(writeState(`${folder}/state.json`, createLogsMemory(), { maxBytes: 100 })).rejects.toMatchObject({
    code: 'file_unwritable',
    details: expect.stringMatching(/state\.json \(its \d+ bytes exceed the limit of 100/),
  })
  expect(await readdir(folder)).toEqual(['state.json'])
  expect(await readFile(`${folder}/state.json`, 'utf8')).toBe('old')
})
