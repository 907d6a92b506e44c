import type { TransactionItem } from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { createSigningEnclave, createTestWalletKey } from '../../test/signingEnclave.ts'
import { createFakeWitness } from '../ports.fake.ts'

export const NOW = Date.parse('2026-06-15T12:00:00.000Z')
export const COORDINATOR = 'c0'.repeat(32)
export const alice = createTestWalletKey('alice')
export const bob = createTestWalletKey('bob')

export function createItem(nonce: number, wallet = alice): TransactionItem {
  const txMetadata = createTx(nonce)
  return {
    kind: 'transaction',
    statementVersion: 1,
    sid: '51'.repeat(32),
    grant: 'grant',
    keyId: wallet.keyId,
    digest: toDigest(txMetadata),
    txMetadata,
    witness: createFakeWitness(0),
  }
}

export function createEnclave() {
  return createSigningEnclave({ clock: { now: () => NOW }, coordinatorKey: COORDINATOR, wallets: [alice, bob] })
}
