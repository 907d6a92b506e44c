import type { AttestationReceiptV1 } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import { toPrefixed } from './bytes.ts'
import type { Tables } from './tables.ts'
import type { Proof } from './types.ts'

export async function findProof(db: Kysely<Tables>, slug: string): Promise<Proof | undefined> {
  const row = await db
    .selectFrom('attestations as a')
    .innerJoin('pending_transactions as p', 'p.id', 'a.pending_transaction_id')
    .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
    .innerJoin('verifications as v', 'v.id', 'a.verification_id')
    .where('a.slug', '=', slug)
    .select(['a.slug', 'p.tx_hash', 'p.chain_id', 'w.address', 'a.status', 'a.ipfs_cid', 'a.created_at'])
    .select(['a.onchain_tx_hash', 'a.onchain_block_number', 'v.quote_verified', 'a.receipt_bytes'])
    .executeTakeFirst()
  return (
    row && {
      slug: row.slug,
      txHash: toPrefixed(row.tx_hash),
      chainId: Number(row.chain_id),
      walletAddress: toPrefixed(row.address),
      status: row.status,
      ipfsCid: row.ipfs_cid,
      onchainTxHash: row.onchain_tx_hash && toPrefixed(row.onchain_tx_hash),
      onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
      kmsQuoteVerified: row.quote_verified,
      // Its bytes are frozen before the pin; specification §2 shows them once the pin is done.
      receipt: row.ipfs_cid === null ? null : parseReceiptBytes(row.receipt_bytes),
      createdAt: row.created_at.getTime(),
    }
  )
}

/** Our own canonical bytes, which the database keeps from changing: no need to check their form at every poll. */
function parseReceiptBytes(bytes: Uint8Array | null): AttestationReceiptV1 | null {
  return bytes && JSON.parse(Buffer.from(bytes).toString('utf8'))
}
