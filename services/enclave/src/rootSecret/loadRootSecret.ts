import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { getDstackKey } from '@countersign/evidence/core'
import { createFolder, readCode, writeNewFile } from '@countersign/service'
import type { Random } from '../ports.ts'
import { assertSecret, SECRET_BYTES } from './rootSecretHolder.ts'

/** The source of the secret from which every wallet key is derived. */
export type RootSecretSource = { kind: 'file'; path: string } | { kind: 'dstack'; socketPath?: string }

/** dstack derives our key for this path. Another path would mean another set of wallets. */
const DSTACK_KEY_PATH = 'countersign/root-secret/v1'

/** Reads the root secret. A `file` source creates it at the first start. */
export async function loadRootSecret(source: RootSecretSource, random: Random): Promise<Uint8Array<ArrayBuffer>> {
  if (source.kind === 'dstack') {
    const { socketPath } = source
    const key = await getDstackKey({ path: DSTACK_KEY_PATH, ...(socketPath === undefined ? {} : { socketPath }) })
    return assertSecret(key)
  }
  try {
    return await readSecretFile(source.path)
  } catch (error) {
    if (readCode(error) !== 'ENOENT') throw error
  }
  await createSecretFile(source.path, random)
  return readSecretFile(source.path)
}

async function readSecretFile(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const { mode } = await stat(path)
  if ((mode & 0o077) !== 0) throw new Error('the root secret file is open to others: chmod 600 it')
  const text = (await readFile(path, 'utf8')).trim()
  if (!/^[0-9a-f]{64}$/.test(text)) throw new Error('the root secret file does not hold 32 bytes of hex')
  return assertSecret(new Uint8Array(Buffer.from(text, 'hex')))
}

/** Two concurrent first starts agree on one secret. */
async function createSecretFile(path: string, random: Random) {
  await createFolder(dirname(path))
  const text = `${Buffer.from(random(SECRET_BYTES)).toString('hex')}\n`
  try {
    await writeNewFile({ path, text, mode: 0o600, random })
  } catch (error) {
    if (readCode(error) !== 'EEXIST') throw error
  }
}
