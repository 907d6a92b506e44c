import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Checkpoint, hashOrigin, parseCheckpoint, parseNote } from '@countersign/log'

/** The newest checkpoint of each log that this witness may have cosigned, including logs that it no longer accepts. */
export type Store = {
  /** By the SHA-256 of the origin, in hex. */
  latest(originHash: string): Stored | undefined
  /**
   * Stores a checkpoint durably. When it returns, the checkpoint survives a power failure. Before that, no cosignature may leave the process.
   */
  save(stored: Stored): void
}

/** A checkpoint and its note. */
export type Stored = { checkpoint: Checkpoint; note: string }

/** The file operations that a store uses. Tests replace them. */
export type Files = Pick<
  typeof import('node:fs'),
  'openSync' | 'writeFileSync' | 'fsyncSync' | 'closeSync' | 'renameSync' | 'readFileSync' | 'readdirSync'
>

/**
 * Opens the folder, which has one file per log. A save writes a temporary file, syncs it, renames it and syncs the folder, so a crash leaves
 * the old file or the new one. An unreadable file is an error: treated as missing, it would make the log look new, and the witness could
 * cosign a second history. Saves are synchronous, because a thread for each step would cost more time.
 */
export function openStore(
  folder: string,
  files: Files = { openSync, writeFileSync, fsyncSync, closeSync, renameSync, readFileSync, readdirSync },
): Store {
  // The folder was created with the key. If it is missing, the cosigned checkpoints were lost, so this throws.
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
