import { readFile, stat } from 'node:fs/promises'
import { createX25519Pair, exportX25519, importX25519Pair, type X25519Pair } from '@countersign/root-secret/sealing'
import { readCode, writeNewFile } from '@countersign/service'
import { CustodianError } from './parseCommand.ts'

/** Creates a key in a file that only its owner can read. Never overwrites a file, because it may be the key of a share. */
export async function createKeyFile(path: string): Promise<X25519Pair> {
  const pair = createX25519Pair()
  const secret = exportX25519(pair.privateKey)
  try {
    await writeNewFile({ path, text: `${Buffer.from(secret).toString('hex')}\n`, mode: 0o600 })
  } catch (error) {
    throw new CustodianError(readCode(error) === 'EEXIST' ? `${path} already exists` : `could not write ${path}`)
  } finally {
    secret.fill(0)
  }
  return pair
}

export async function readKeyFile(path: string): Promise<X25519Pair> {
  let text: string
  let mode: number
  try {
    mode = (await stat(path)).mode
    text = (await readFile(path, 'utf8')).trim()
  } catch {
    throw new CustodianError(`could not read ${path}`)
  }
  if ((mode & 0o077) !== 0) throw new CustodianError(`other users can access ${path}: run chmod 600 on it`)
  if (!/^[0-9a-f]{64}$/.test(text)) throw new CustodianError(`invalid custodian key in ${path}`)
  return importX25519Pair(Buffer.from(text, 'hex'))
}
