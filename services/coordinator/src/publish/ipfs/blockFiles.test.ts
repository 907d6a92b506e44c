import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { toCid } from '@countersign/receipt'
import { NextToLast } from 'blockstore-fs/sharding'
import { CID } from 'multiformats/cid'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { onSync } from '../../../../../packages/service/test/onSync.ts'
import { openBlockFiles } from './blockFiles.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-blocks-'))
})
afterEach(() => rm(folder, { recursive: true }))

const toFolders = () => ({ blocks: join(folder, 'blocks'), incoming: join(folder, 'incoming') })

/** Two blocks in one folder. */
function findNeighbours(): readonly [Uint8Array, Uint8Array] {
  const layout = new NextToLast()
  const seen = new Map<string, Uint8Array>()
  for (let number = 0; ; number++) {
    const bytes = new TextEncoder().encode(String(number))
    const { dir: shard } = layout.encode(CID.parse(toCid(bytes)))
    const other = seen.get(shard)
    if (other) return [other, bytes]
    seen.set(shard, bytes)
  }
}

test('two concurrent writers into a new folder both wait until the folder is on disk', async () => {
  const { blocks, incoming } = toFolders()
  const files = await openBlockFiles({ blocks, incoming })
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>()
  const order: string[] = []
  await onSync(async (path) => {
    if (path.startsWith(incoming)) return
    if (path === blocks) {
      ask()
      await mayGoOn
    }
    order.push(relative(folder, path).slice(0, 'blocks'.length + 1))
  })
  const writes = findNeighbours().map((bytes) => files.write(toCid(bytes), bytes))
  await isAsked
  // Gives the other writer time to proceed if it did not wait.
  for (let look = 0; look < 200; look++) await stat(folder)
  goOn()
  await Promise.all(writes)
  expect(order).toEqual(['blocks', 'blocks/', 'blocks/'])
})

test('creates a folder again if creation failed or it was deleted', async () => {
  const files = await openBlockFiles(toFolders())
  const [one, other] = findNeighbours()
  await files.write(toCid(one), one)
  await rm(toFolders().blocks, { recursive: true })
  await expect(files.write(toCid(other), other)).rejects.toMatchObject({ code: 'ENOENT' })
  await files.write(toCid(other), other)
  expect(await files.read(toCid(other))).toEqual(Buffer.from(other))
})
