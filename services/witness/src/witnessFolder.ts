import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder, writeNewFile } from '@countersign/service'

/** A witness's folder holds its key and the checkpoints that the key has cosigned. Each is useless without the other. */
export const toKeyPath = (folder: string) => join(folder, 'key.json')
export const toStorePath = (folder: string) => join(folder, 'checkpoints')

/**
 * Creates the folder with a key file that only its owner may read. Writes the key last and atomically, so a crash leaves a folder without a
 * key, which the next try completes. Throws if there is a key: with a new, empty folder for checkpoints, it could cosign a second history.
 */
export async function createWitnessFolder(folder: string, keyFile: string): Promise<void> {
  const path = toKeyPath(folder)
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw new Error(`${path} already exists`)
  await createFolder(toStorePath(folder))
  await writeNewFile({ path, text: keyFile, mode: 0o600 })
}
