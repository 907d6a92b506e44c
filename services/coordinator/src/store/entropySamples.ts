import { hashEntropy } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { fromBytes, toBytes } from './bytes.ts'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'

/** One statement, in one order, so that two coordinators with the same samples share them out and never wait in a circle. */
export async function claimSamples(db: Kysely<Tables>, witnesses: readonly Witness[], now: number): Promise<Witness[]> {
  if (witnesses.length === 0) return []
  const byHash = new Map(witnesses.map((witness) => [fromBytes(hashEntropy(toBytes(witness.valueHex))), witness]))
  const { rows } = await sql<{ hash: string }>`${sql.raw(PREPARED)}
    insert into entropy_samples (entropy_hash, claimed_at)
    select decode(hash, 'hex'), ${new Date(now)}::timestamptz from unnest(${[...byHash.keys()]}::text[]) as hash order by 1
    on conflict (entropy_hash) do nothing
    returning encode(entropy_hash, 'hex') as hash`.execute(db)
  const claimed = new Set(rows.map(({ hash }) => hash))
  return [...byHash].filter(([hash]) => claimed.has(hash)).map(([, witness]) => witness)
}
