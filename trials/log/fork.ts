import { hkdfSync } from 'node:crypto'
import { cp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { formatAddCheckpoint, formatCheckpoint, signNote } from '@countersign/log'
import { hashTree, hashTreeLeaf } from '@countersign/protocol'
import { startWitness, type WitnessFolder } from '@countersign/testing/launcher'
import type { Scope } from '@countersign/testing/stack'
import { createSigner, type Signer } from '../../packages/log/test/logs.ts'

/** Signs checkpoints like the enclave. Normally only the enclave knows the root secret; in this test it is in a file. */
export async function createLogSigner(rootSecretFile: string, origin: string): Promise<Signer> {
  const secret = Buffer.from((await readFile(rootSecretFile, 'utf8')).trim(), 'hex')
  const info = Buffer.concat([Buffer.from('countersign/log/v1b'), Buffer.of(0), Buffer.from(origin)])
  return createSigner(origin, 'ed25519', new Uint8Array(hkdfSync('sha256', secret, '', info, 32)))
}

/** A checkpoint of another history. */
export function createOtherCheckpoint(log: Signer, size: number): { checkpoint: string; root: Uint8Array } {
  const leaves = Array.from({ length: size }, (_, index) => hashTreeLeaf(new TextEncoder().encode(`other ${index}`)))
  const root = hashTree(leaves)
  const text = formatCheckpoint({ origin: log.key.name, size, root, extensions: [] })
  return { checkpoint: signNote(text, [log]), root }
}

/** Starts a second process with the key of a witness that has cosigned another history of the log. Returns its URL. */
export async function startForkedWitness(
  { add }: Pick<Scope, 'add'>,
  parameters: { witness: WitnessFolder; logsFile: string; log: Signer; size: number },
): Promise<string> {
  const { witness, logsFile, log, size } = parameters
  const folder = `${witness.folder}-fork`
  await cp(witness.folder, folder, { recursive: true })
  // Copies the key but not the checkpoints.
  await rm(join(folder, 'checkpoints'), { recursive: true })
  await cp(join(witness.folder, 'checkpoints'), join(folder, 'checkpoints'), { recursive: true, filter: isFolder })
  const service = add(startWitness({ folder, logsFile }), ({ kill }) => kill('SIGKILL'))
  const url = String((await service.started).address)
  const { checkpoint } = createOtherCheckpoint(log, size)
  const body = formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint })
  const response = await fetch(`${url}/add-checkpoint`, { method: 'POST', body })
  if (response.status !== 200) throw new Error(`forked witness did not cosign: ${await response.text()}`)
  return url
}

const isFolder = (path: string) => path.endsWith('/checkpoints')
