import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'

/** A witness's folder holds its key and, beside it, what the key has cosigned: neither is of any use without the other. */
export const toKeyPath = (folder: string) => join(folder, 'key.json')
export const toStorePath = (folder: string) => join(folder, 'checkpoints')

/** Makes the folder with a key file that only its owner may read. Throws where there is one already. */
export async function createWitnessFolder(folder: string, keyFile: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await mkdir(toStorePath(folder), { mode: 0o700 })
  const file = await open(toKeyPath(folder), 'wx', 0o600)
  try {
    await file.writeFile(keyFile)
    await file.sync()
  } finally {
    await file.close()
  }
  const directory = await open(folder, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
