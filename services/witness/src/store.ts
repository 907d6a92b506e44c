import { createHash } from 'node:crypto'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { type Checkpoint, parseCheckpoint, parseNote } from '@countersign/log'

/** The newest checkpoint of each log that this witness may have cosigned. */
export type Store = {
  latest(origin: string): Stored | undefined
  /** Resolves when it would survive a power failure. Until then nothing of it may leave the process. */
  save(origin: string, note: string): Promise<void>
}

/** A checkpoint with the note that it came in. */
type Stored = { checkpoint: Checkpoint; note: string }

/** What a store does to files; only tests have another. */
export type Files = { open: typeof open; readFile: typeof readFile; rename: typeof rename }

/**
 * Opens the folder with one file for each log, which is replaced whole: written beside it, synced, renamed, and the folder synced. A
 * process that dies at any moment leaves the old file or the new one. A file that cannot be read is not taken for none: the witness
 * would begin that log anew, and could cosign a second history.
 */
export async function openStore(
  folder: string,
  origins: Iterable<string>,
  files: Files = { open, readFile, rename },
): Promise<Store> {
  // The folder is made with the key: one that is not there was lost, and with it what the key has cosigned.
  await syncFolder(folder, files)
  const latest = new Map<string, Stored>()
  for (const origin of origins) {
    const note = await readNote(join(folder, toFileName(origin)), files)
    if (note === undefined) continue
    const checkpoint = parseCheckpoint(parseNote(note).text)
    if (checkpoint.origin !== origin) throw new Error(`the file of ${origin} has the checkpoint of another log`)
    latest.set(origin, { checkpoint, note })
  }
  return {
    latest: (origin) => latest.get(origin),
    async save(origin, note) {
      const checkpoint = parseCheckpoint(parseNote(note).text)
      const path = join(folder, toFileName(origin))
      await withFile(await files.open(`${path}.new`, 'w', 0o600), async (file) => {
        await file.writeFile(note)
        await file.sync()
      })
      await files.rename(`${path}.new`, path)
      await syncFolder(folder, files)
      latest.set(origin, { checkpoint, note })
    },
  }
}

/** Origins may hold anything; their hashes are names of files, and how monitors ask for them. */
export function toFileName(origin: string): string {
  return createHash('sha256').update(origin).digest('hex')
}

async function readNote(path: string, files: Files): Promise<string | undefined> {
  try {
    return await files.readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

async function syncFolder(folder: string, files: Files): Promise<void> {
  await withFile(await files.open(folder, 'r'), (file) => file.sync())
}

async function withFile(file: FileHandle, use: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await use(file)
  } finally {
    await file.close()
  }
}
