import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestPglite, layPglite, seal } from './pglite.ts'

let folder = ''
let path = ''
let image: Buffer
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-pglite-'))
  path = join(folder, 'cache', 'image')
  await expectUsable()
  image = await readFile(path)
})
afterAll(() => rm(folder, { recursive: true }))

async function expectUsable() {
  // From the image of all tests: to initialise one takes seconds.
  const pglite = await createTestPglite(path, createTestPglite)
  const { rows } = await pglite.query('select 1 as one')
  expect(rows).toEqual([{ one: 1 }])
  await pglite.close()
}

test('a database laid in a folder is opened there as it is, and keeps what is written', async () => {
  const laid = join(folder, 'laid', 'database')
  await layPglite(laid)
  // Else it would be initialised there all the same, and nobody would notice.
  const made = await stat(join(laid, 'PG_VERSION'))
  const ask = async (statement: string) => {
    const pglite = await PGlite.create(laid)
    const { rows } = await pglite.query(statement)
    await pglite.close()
    return rows
  }
  await ask('create table kept as select 1 as one')
  expect(await ask('select one from kept')).toEqual([{ one: 1 }])
  expect((await stat(join(laid, 'PG_VERSION'))).mtimeMs).toBe(made.mtimeMs)
})

test('a folder that cannot be written to is an error', async () => {
  await writeFile(join(folder, 'file'), '')
  await expect(layPglite(join(folder, 'file', 'database'))).rejects.toMatchObject({ code: 'ENOTDIR' })
})

test('the first database leaves the image alone in its folder, and the next is loaded from it', async () => {
  expect(await readdir(join(folder, 'cache'))).toEqual(['image'])
  await expectUsable()
  expect(image.equals(await readFile(path))).toBe(true)
})

test.each<[string, () => Uint8Array]>([
  ['with a bit that has flipped', () => image.with(image.length >> 1, ~(image[image.length >> 1] ?? 0) & 0xff)],
  ['that PGlite cannot load', () => seal(image.subarray(32, image.length >> 1))],
])('an image %s is made again', async (_, damage) => {
  await writeFile(path, damage())
  await expectUsable()
  const made = await readFile(path)
  expect(made.length).toBe(image.length)
  expect(made.equals(seal(made.subarray(32)))).toBe(true)
  expect(await readdir(join(folder, 'cache'))).toEqual(['image'])
})
