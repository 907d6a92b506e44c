import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readCode, syncFolder } from '@countersign/service'
import { NextToLast } from 'blockstore-fs/sharding'
import { CID } from 'multiformats/cid'

/** The files of an `FsBlockstore`. A block is either stored completely and durably, or not at all. */
type BlockFiles = {
  /** Resolves when the bytes and the file name are on disk. */
  write(cid: string, bytes: Uint8Array): Promise<void>
  /** Undefined if there is no such block. Doesn't check the hash. */
  read(cid: string): Promise<Uint8Array<ArrayBuffer> | undefined>
}

/**
 * Writes the layout of `FsBlockstore`, which syncs neither file nor folder, so a block may be empty after a power cut. Its temporary files
 * also have one name per block, so two writers of one block collide.
 */
export async function openBlockFiles({ blocks, incoming }: { blocks: string; incoming: string }): Promise<BlockFiles> {
  const layout = new NextToLast()
  const pathOf = (cid: string) => {
    const { dir, file } = layout.encode(CID.parse(cid))
    return join(blocks, dir, file)
  }
  await mkdir(blocks, { recursive: true })
  await syncFolder(dirname(blocks))
  // Deletes files that a crash left incomplete.
  await rm(incoming, { recursive: true, force: true })
  await mkdir(incoming, { recursive: true })

  /** Folders that exist or are being created. Every writer waits until a new folder's name is on disk. */
  const shards = new Map<string, Promise<void>>()
  async function createShard(path: string) {
    await mkdir(path, { recursive: true })
    await syncFolder(blocks)
  }
  function openShard(path: string): Promise<void> {
    const opened = shards.get(path) ?? createShard(path)
    shards.set(path, opened)
    return opened
  }

  return {
    async write(cid, bytes) {
      const path = pathOf(cid)
      const temporary = join(incoming, randomUUID())
      try {
        const file = await open(temporary, 'wx')
        try {
          await file.writeFile(bytes)
          await file.sync()
        } finally {
          await file.close()
        }
        await openShard(dirname(path))
        await rename(temporary, path)
      } catch (error) {
        shards.delete(dirname(path))
        await rm(temporary, { force: true })
        throw error
      }
      await syncFolder(dirname(path))
    },
    async read(cid) {
      try {
        return await readFile(pathOf(cid))
      } catch (error) {
        if (readCode(error) === 'ENOENT') return undefined
        throw error
      }
    },
  }
}
