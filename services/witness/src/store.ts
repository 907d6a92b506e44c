import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Checkpoint, parseCheckpoint, parseNote } from '@countersign/log'
import { readCode } from '@countersign/service'

/** The newest checkpoint of each log that this witness may have cosigned. */
export type Store = {
  latest(origin: string): Stored | undefined
  /** Once it has returned, what was saved would survive a power failure. Until then nothing of it may leave the process. */
  save(stored: Stored): void
}

/** A checkpoint with the note that it came in. */
export type Stored = { checkpoint: Checkpoint; note: string }

/** What a store does to files; only tests have others. */
export type Files = Pick<
  typeof import('node:fs'),
  'openSync' | 'writeFileSync' | 'fsyncSync' | 'closeSync' | 'renameSync' | 'readFileSync'
>

/**
 * Opens the folder with one file for each log, which is replaced whole: written beside it, synced, renamed, and the folder synced. A
 * process that dies at any moment leaves the old file or the new one. A file that cannot be read is not taken for none: the witness
 * would take that log for a new one, and could cosign a second history. A save holds up everything else: another thread for each step costs more
 * than it gains.
 */
export function openStore(
  folder: string,
  origins: Iterable<string>,
  files: Files = { openSync, writeFileSync, fsyncSync, closeSync, renameSync, readFileSync },
): Store {
  // The folder is made with the key: one that is not there was lost, and with it what the key has cosigned.
  syncFile(folder, 'r')
  const latest = new Map<string, Stored>()
  for (const origin of origins) {
    const note = readNote(join(folder, toFileName(origin)), files)
    if (note === undefined) continue
    const checkpoint = parseCheckpoint(parseNote(note).text)
    if (checkpoint.origin !== origin) throw new Error(`the file of ${origin} has the checkpoint of another log`)
    latest.set(origin, { checkpoint, note })
  }

  function syncFile(path: string, flags: 'r' | 'w', text?: string) {
    const file = files.openSync(path, flags, 0o600)
    try {
      if (text !== undefined) files.writeFileSync(file, text)
      files.fsyncSync(file)
    } finally {
      files.closeSync(file)
    }
  }

  return {
    latest: (origin) => latest.get(origin),
    save(stored) {
      const { origin } = stored.checkpoint
      const path = join(folder, toFileName(origin))
      syncFile(`${path}.new`, 'w', stored.note)
      files.renameSync(`${path}.new`, path)
      syncFile(folder, 'r')
      latest.set(origin, stored)
    },
  }
}

/** Origins may hold anything; their hashes are names of files, and how monitors ask for them. */
export function toFileName(origin: string): string {
  return createHash('sha256').update(origin).digest('hex')
}

function readNote(path: string, files: Files): string | undefined {
  try {
    return files.readFileSync(path, 'utf8')
  } catch (error) {
    if (readCode(error) === 'ENOENT') return undefined
    throw error
  }
}
