import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder, writeNewFile } from '@countersign/service'

/** A witness's folder holds its key and, beside it, what the key has cosigned: neither is of any use without the other. */
export const toKeyPath = (folder: string) => join(folder, 'key.json')
export const toStorePath = (folder: string) => join(folder, 'checkpoints')

/**
 * Makes the folder with a key file that only its owner may read. The key comes last, and whole: what a crash leaves is no witness, and the
 * next try makes one of it. Where there is a key it throws and changes nothing: beside one whose checkpoints were lost, a new folder
 * for them would let it cosign a second history.
 */
export async function createWitnessFolder(folder: string, keyFile: string): Promise<void> {
  const path = toKeyPath(folder)
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw new Error(`${path} is there already`)
  await createFolder(toStorePath(folder))
  await writeNewFile({ path, text: keyFile, mode: 0o600 })
}
