import { readdir, readFile } from 'node:fs/promises'
import { createLogsMemory } from '@countersign/verify'
import { expect, test } from 'vitest'
import { createFolder } from '../../test/folder.ts'
import { writeState } from '../files.ts'

test('does not write a state that is too large to read back', async () => {
  const folder = await createFolder({ 'state.json': 'old' })
  await expect(writeState(`${folder}/state.json`, createLogsMemory(), { maxBytes: 100 })).rejects.toMatchObject({
    code: 'file_unwritable',
    details: expect.stringMatching(/state\.json \(it would have \d+ bytes, and at most 100 are read back/),
  })
  expect(await readdir(folder)).toEqual(['state.json'])
  expect(await readFile(`${folder}/state.json`, 'utf8')).toBe('old')
})
