import { randomBytes } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import { packReceipt, unpackReceipt } from '../../src/store/signings.ts'
import type { Tables } from '../../src/store/tables.ts'

/** A proof's rows, with its frozen receipt. */
export async function findProofRow(db: Kysely<Tables>, slug: string) {
  const { bytes, tx_hash, digest, signature, facts, ...row } = await db
    .selectFrom('proofs')
    .innerJoin('signings', 'signings.id', 'proofs.signing_id')
    .leftJoin('receipts', 'receipts.signing_id', 'proofs.signing_id')
    .where('slug', '=', slug)
    .select([
      'status',
      'ipfs_cid',
      'pin_attempts',
      'failure',
      'pinned_at',
      'bytes',
      'tx_hash',
      'digest',
      'signature',
      'facts',
    ])
    .executeTakeFirstOrThrow()
  return { ...row, receipt: bytes && unpackReceipt(bytes, { tx_hash, digest, signature, facts }) }
}

export async function freezeRow(db: Kysely<Tables>, slug: string, bytes: Uint8Array = Buffer.from('{}')) {
  const row = await db
    .selectFrom('proofs')
    .innerJoin('signings', 'signings.id', 'proofs.signing_id')
    .where('slug', '=', slug)
    .select(['signing_id', 'tx_hash', 'digest', 'signature', 'facts'])
    .executeTakeFirstOrThrow()
  await sql`insert into receipts (signing_id, bytes) values (${row.signing_id}::bigint, ${packReceipt(bytes, row)})
    on conflict do nothing`.execute(db)
}

/** The state after the pin stage, written directly. */
export async function pinRows(
  db: Kysely<Tables>,
  slugs: readonly string[],
  {
    bytes,
    toCid = (slug) => `bafk${slug}`,
    now,
  }: { bytes?: Uint8Array; toCid?: (slug: string) => string; now?: number } = {},
) {
  for (const slug of slugs) {
    await freezeRow(db, slug, bytes)
    await sql`update proofs set status = 'pending_onchain', ipfs_cid = ${toCid(slug)},
      pinned_at = ${now === undefined ? null : new Date(now)} where slug = ${slug}`.execute(db)
  }
}

/** The state after the confirm stage, in block 7. Returns the id of a publication without other data. */
export async function completeRow(db: Kysely<Tables>, slug: string): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    with made as (
      insert into publications (chain_id, account, nonce, contract, calldata, status, tx_hash, block_number, created_at)
      values (1, ${randomBytes(20)}, 0, ${randomBytes(20)}, '', 'confirmed', decode(repeat('ab', 32), 'hex'), 7, now()) returning id
    ) update proofs set publication_id = made.id, status = 'complete' from made where slug = ${slug} returning made.id::int`.execute(
    db,
  )
  return rows[0]?.id ?? 0
}
