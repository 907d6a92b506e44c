import { open, readFile, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createX25519Pair, exportX25519, importX25519Pair, type X25519Pair } from '@countersign/root-secret/sealing'
import { CustodianError } from './custodianError.ts'

/** Creates a key in a file that only its owner can read. An existing file is never overwritten: it may open a share. */
export async function createKeyFile(path: string): Promise<X25519Pair> {
  const pair = createX25519Pair()
  const secret = exportX25519(pair.privateKey)
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(`${Buffer.from(secret).toString('hex')}\n`)
      await file.sync()
      await syncFolder(path)
    } catch (error) {
      // Half a key would block this name for the next try.
      await rm(path, { force: true })
      throw error
    } finally {
      await file.close()
    }
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    throw new CustodianError(isTaken ? `${path} is there already` : `${path} cannot be written`)
  } finally {
    secret.fill(0)
  }
  return pair
}

async function syncFolder(path: string) {
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

export async function readKeyFile(path: string): Promise<X25519Pair> {
  let text: string
  let mode: number
  try {
    mode = (await stat(path)).mode
    text = (await readFile(path, 'utf8')).trim()
  } catch {
    throw new CustodianError(`${path} cannot be read`)
  }
  if ((mode & 0o077) !== 0) throw new CustodianError(`${path} is open to others: chmod 600 it`)
  if (!/^[0-9a-f]{64}$/.test(text)) throw new CustodianError(`${path} does not hold a custodian's key`)
  return importX25519Pair(Buffer.from(text, 'hex'))
}
