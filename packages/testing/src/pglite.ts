import { spawn } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { toPath } from './stack/paths.ts'

const require = createRequire(import.meta.url)
const DIST = dirname(require.resolve('@electric-sql/pglite'))
const { version } = require(join(DIST, '../package.json')) as { version: string }
/** Kept between runs, one for each version of PGlite. */
const IMAGE = toPath(`node_modules/.cache/countersign-pglite-${version}`)

const DIGEST_BYTES = 32

/** An empty PGlite in memory, loaded from an image: to initialise one takes five times as long. The first test makes the image. */
export async function createTestPglite(
  path = IMAGE,
  initialise: () => Promise<PGlite> = () => PGlite.create('memory://'),
): Promise<PGlite> {
  const kept = await readImage(path)
  if (kept !== undefined) {
    try {
      return await load(kept)
    } catch {
      // It would fail every test until somebody deletes it.
      await rm(path, { force: true })
    }
  }
  return load(await writeImage(path, await initialise()))
}

/** Lays an empty database in a folder, where a service finds it: to initialise one takes as long as the rest of a service's start. */
export async function layPglite(folder: string): Promise<void> {
  const image = (await readImage(IMAGE)) ?? (await writeImage(IMAGE, await PGlite.create('memory://')))
  await mkdir(folder, { recursive: true })
  await unpack(image, folder)
}

async function load(image: Uint8Array<ArrayBuffer>): Promise<PGlite> {
  program ??= compile()
  return PGlite.create({ dataDir: 'memory://', loadDataDir: new Blob([image]), ...(await program) })
}

/** Of the process: compiled for each database anew, it takes as long as the rest of its start. */
let program: ReturnType<typeof compile> | undefined

async function compile() {
  const code = await readFile(join(DIST, 'pglite.wasm'))
  const files = await readFile(join(DIST, 'pglite.data'))
  return { pgliteWasmModule: await WebAssembly.compile(code), fsBundle: new Blob([files]) }
}

/** An image is a tar archive. */
async function unpack(image: Uint8Array, folder: string): Promise<void> {
  const tar = spawn('tar', ['-x', '--no-same-owner', '-C', folder], { stdio: ['pipe', 'ignore', 'ignore'] })
  // Of one that ends early its code tells.
  tar.stdin.on('error', () => {})
  tar.stdin.end(image)
  const [code] = await once(tar, 'close')
  if (code !== 0) throw new Error(`tar ended with ${code}`)
}

/**
 * Undefined where there is none, or a damaged one: the SHA-256 that it begins with is another. PGlite does not find all damage, and
 * rejects promises that nobody awaits where it does.
 */
async function readImage(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    const file = new Uint8Array(await readFile(path))
    const image = file.subarray(DIGEST_BYTES)
    return hash('sha256', image, 'buffer').equals(file.subarray(0, DIGEST_BYTES)) ? image : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

async function writeImage(path: string, pglite: PGlite): Promise<Uint8Array<ArrayBuffer>> {
  const dump = await pglite.dumpDataDir('none')
  await pglite.close()
  const bytes = new Uint8Array(await dump.arrayBuffer())
  await mkdir(dirname(path), { recursive: true })
  // Whole or not at all: another process may read it at any moment.
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  try {
    await writeFile(draft, seal(bytes))
    await rename(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
  return bytes
}

/** The image with its SHA-256 before it. */
export function seal(image: Uint8Array): Uint8Array {
  return Buffer.concat([hash('sha256', image, 'buffer'), image])
}
