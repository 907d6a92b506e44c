import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readCode, syncFolder } from '@countersign/service'
import { NextToLast } from 'blockstore-fs/sharding'
import { CID } from 'multiformats/cid'

/** The files of an `FsBlockstore`, written so that a block that is there is there whole, and stays. */
type BlockFiles = {
  /** Resolves once the bytes and their name are on the disk, not merely in the system's memory. */
  write(cid: string, bytes: Uint8Array): Promise<void>
  /** Undefined where there is none. Not hashed. */
  read(cid: string): Promise<Uint8Array<ArrayBuffer> | undefined>
}

/**
 * `FsBlockstore` itself writes a temporary file and renames it, but syncs neither: a block outlives its process, yet may be
 * empty after a power cut. Its temporary files also have one name for each block, so that two writers of the same block get
 * into each other's way. It reads what is written here, because the layout is its own.
 */
export async function openBlockFiles({ blocks, incoming }: { blocks: string; incoming: string }): Promise<BlockFiles> {
  const layout = new NextToLast()
  const pathOf = (cid: string) => {
    const { dir, file } = layout.encode(CID.parse(cid))
    return join(blocks, dir, file)
  }
  await mkdir(blocks, { recursive: true })
  await syncFolder(dirname(blocks))
  // Files that a crash left half written belong to no block.
  await rm(incoming, { recursive: true, force: true })
  await mkdir(incoming, { recursive: true })

  /** Folders that are made, or being made. Every writer into a new one waits until its name is on the disk, not only the one that made it. */
  const shards = new Map<string, Promise<void>>()
  async function makeShard(path: string) {
    await mkdir(path, { recursive: true })
    await syncFolder(blocks)
  }
  function openShard(path: string): Promise<void> {
    const opened = shards.get(path) ?? makeShard(path)
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
