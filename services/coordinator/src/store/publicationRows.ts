import { type AttestationPublished, toPrefixedHex } from '@countersign/protocol'
import { sql } from 'kysely'
import { toBytes } from './bytes.ts'
import type { PublicationTransaction } from './types.ts'

/** The types know the key as one that is never written, and so not as a number to compare with. */
export const isId = (id: number) => sql<boolean>`id = ${id}`

export function toTransactionRow({ hash, raw, kind, gas, maxFeePerGas, maxPriorityFeePerGas }: PublicationTransaction) {
  return {
    tx_hash: toBytes(hash),
    kind,
    raw: toBytes(raw),
    gas: gas.toString(),
    max_fee_per_gas: maxFeePerGas.toString(),
    max_priority_fee_per_gas: maxPriorityFeePerGas.toString(),
  }
}

export function toPublished(row: {
  address: Uint8Array
  tx_hash: Uint8Array
  ipfs_cid: string | null
}): AttestationPublished {
  // The database has no pinned proof without a CID.
  if (row.ipfs_cid === null) throw new Error('a pinned proof has no CID')
  return { wallet: toPrefixedHex(row.address), txHash: toPrefixedHex(row.tx_hash), ipfsCid: row.ipfs_cid }
}
