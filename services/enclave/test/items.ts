import {
  enclavePaths,
  type OpenSessionResponse,
  type SignItemsResponse,
  type TransactionItem,
} from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { callEnclave, type TestCoordinator } from './coordinator.ts'
import { createWitness } from './witness.ts'

/** A transfer from a session's wallet, for a statement of version 1. */
export function toItem({ sid, grant, keyId }: OpenSessionResponse, nonce = 0): TransactionItem {
  const txMetadata = createTx(nonce)
  const digest = toDigest(txMetadata)
  return { kind: 'transaction', statementVersion: 1, sid, grant, keyId, digest, txMetadata, witness: createWitness() }
}

/** The signature or the subject that a running enclave returns for one item, or its error. */
export async function signOne({ url }: { url: string }, coordinator: TestCoordinator, item: object) {
  const { body } = await callEnclave(url, coordinator, enclavePaths.sign, { items: [item] })
  const [result] = (body as SignItemsResponse).results
  if (result === undefined || 'error' in result) return result?.error
  return 'subject' in result ? result.subject : result.statement.signature
}
