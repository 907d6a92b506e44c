import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Checkpoint, hashOrigin, parseCheckpoint, parseNote } from '@countersign/log'

/** The newest checkpoint of each log that this witness may have cosigned, including logs that it no longer accepts. */
export type Store = {
  /** By the SHA-256 of the origin, in hex. */
  latest(originHash: string): Stored | undefined
  /** Once it has returned, what was saved would survive a power failure. Until then nothing of it may leave the process. */
  save(stored: Stored): void
}

/** A checkpoint with the note that it came in. */
export type Stored = { checkpoint: Checkpoint; note: string }

/** What a store does to files; only tests have others. */
export type Files = Pick<
  typeof import('node:fs'),
  'openSync' | 'writeFileSync' | 'fsyncSync' | 'closeSync' | 'renameSync' | 'readFileSync' | 'readdirSync'
>

/**
 * Opens the folder with one file for each log, which is replaced whole: written beside it, synced, renamed, and the folder synced. A
 * process that dies at any moment leaves the old file or the new one. A file that cannot be read is not taken for none: the witness
 * would take that log for a new one, and could cosign a second history. A save holds up everything else: another thread for each step costs more
 * than it gains.
 */
export function openStore(
  folder: string,
  files: Files = { openSync, writeFileSync, fsyncSync, closeSync, renameSync, readFileSync, readdirSync },
): Store {
  // The folder is made with the key: one that is not there was lost, and with it what the key has cosigned.
  syncFile(folder, 'r')
  const latest = new Map<string, Stored>()
  for (const name of files.readdirSync(folder)) {
    // A killed process may have left a temporary file.
    if (!/^[0-9a-f]{64}$/.test(name)) continue
    const note = files.readFileSync(join(folder, name), 'utf8')
    const checkpoint = parseCheckpoint(parseNote(note).text)
    if (hashOrigin(checkpoint.origin) !== name) throw new Error(`the file ${name} has the checkpoint of another log`)
    latest.set(name, { checkpoint, note })
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
    latest: (originHash) => latest.get(originHash),
    save(stored) {
      // Origins may contain any characters, so their hashes are the file names.
      const name = hashOrigin(stored.checkpoint.origin)
      const path = join(folder, name)
      syncFile(`${path}.new`, 'w', stored.note)
      files.renameSync(`${path}.new`, path)
      syncFile(folder, 'r')
      latest.set(name, stored)
    },
  }
}
