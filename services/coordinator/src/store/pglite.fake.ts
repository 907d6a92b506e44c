import { randomBytes } from 'node:crypto'
import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import packageJson from '../../package.json' with { type: 'json' }

const version = packageJson.dependencies['@electric-sql/pglite']
/** Kept between runs, one for each version of PGlite and each user of the machine. */
const IMAGE = join(tmpdir(), `countersign-pglite-${version}-${userInfo().uid}.tar`)

/** An empty PGlite in memory, loaded from an image: to initialise one takes five times as long. The first test makes the image. */
export async function createTestPglite(): Promise<PGlite> {
  const image = (await readImage()) ?? (await writeImage())
  return PGlite.create({ dataDir: 'memory://', loadDataDir: new Blob([image]) })
}

async function readImage(): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    const { uid } = await stat(IMAGE)
    return uid === userInfo().uid ? new Uint8Array(await readFile(IMAGE)) : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

async function writeImage(): Promise<Uint8Array<ArrayBuffer>> {
  const pglite = await PGlite.create('memory://')
  const dump = await pglite.dumpDataDir('none')
  await pglite.close()
  const bytes = new Uint8Array(await dump.arrayBuffer())
  // Whole or not at all: another process may read it at any moment.
  const draft = `${IMAGE}.${randomBytes(8).toString('hex')}`
  await writeFile(draft, bytes)
  await rename(draft, IMAGE)
  return bytes
}
