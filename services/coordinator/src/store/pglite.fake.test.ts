import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestPglite } from './pglite.fake.ts'

let folder = ''
let path = ''
let image: Buffer
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-pglite-'))
  path = join(folder, 'cache', 'image.tar')
  await expectUsable()
  image = await readFile(path)
})
afterAll(() => rm(folder, { recursive: true }))

async function expectUsable() {
  const pglite = await createTestPglite(path)
  const { rows } = await pglite.query('select 1 as one')
  expect(rows).toEqual([{ one: 1 }])
  await pglite.close()
}

test('the first database leaves the image alone in its folder, and the next is loaded from it', async () => {
  expect(await readdir(join(folder, 'cache'))).toEqual(['image.tar'])
  await expectUsable()
  expect(image.equals(await readFile(path))).toBe(true)
})

test.each<[string, () => Promise<void>]>([
  ['cut off', () => truncate(path, image.length >> 1)],
  ['empty', () => truncate(path, 0)],
  ['of other bytes', () => writeFile(path, Buffer.alloc(image.length, 'x'))],
])('an image that is %s is made again', async (_, damage) => {
  await damage()
  await expectUsable()
  expect((await readFile(path)).length).toBeGreaterThan(image.length >> 1)
  expect(await readdir(join(folder, 'cache'))).toEqual(['image.tar'])
})
