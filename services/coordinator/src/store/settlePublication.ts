import type { Kysely, Selectable, Transaction } from 'kysely'
import { toBytes } from './bytes.ts'
import { type Jobs, PUBLISH_QUEUE } from './jobs.ts'
import { isId } from './publicationRows.ts'
import type { Tables } from './tables.ts'
import type { MinedAt, OpenPublication, PublishFailure } from './types.ts'

/* How a publication ends, and what that means for its proofs. */

type Deps = { db: Kysely<Tables>; jobs: Jobs }

export function confirm(db: Kysely<Tables>, { id, txHash, blockNumber }: { id: number } & MinedAt): Promise<boolean> {
  return settle(db, { id, from: 'pending', to: 'confirmed', txHash, blockNumber }, (transaction) =>
    updateProofs(transaction, id, 'pending_onchain', {
      status: 'complete',
      onchain_tx_hash: toBytes(txHash),
      onchain_block_number: blockNumber,
    }),
  )
}

export function move(db: Kysely<Tables>, { id, txHash, blockNumber }: { id: number } & MinedAt): Promise<boolean> {
  return settle(db, { id, from: 'confirmed', to: 'confirmed', txHash, blockNumber }, (transaction) =>
    updateProofs(transaction, id, 'complete', {
      onchain_tx_hash: toBytes(txHash),
      onchain_block_number: blockNumber,
    }),
  )
}

export function finish(db: Kysely<Tables>, { id }: { id: number }): Promise<boolean> {
  return settle(db, { id, from: 'confirmed', to: 'final' })
}

export type Reverted = MinedAt & {
  id: number
  /** Its account may not publish: that says nothing about a proof, so that one alone does not fail either. */
  isRefused?: boolean
}

export function revert({ db, jobs }: Deps, { id, txHash, blockNumber, isRefused = false }: Reverted): Promise<boolean> {
  return settle(db, { id, from: 'pending', to: 'reverted', txHash, blockNumber }, async (transaction) => {
    const { count } = await transaction
      .selectFrom('attestations')
      .where('publication_id', '=', id)
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow()
    const size = Number(count)
    if (size > 1 || isRefused) return release({ transaction, jobs }, { id, publishLimit: Math.ceil(size / 2) })
    await updateProofs(transaction, id, 'pending_onchain', {
      status: 'onchain_failed',
      failure: 'publish_reverted' satisfies PublishFailure,
    })
  })
}

export function fail(
  db: Kysely<Tables>,
  parameters: { id: number; status: 'reverted' | 'cancelled'; failure: PublishFailure } & MinedAt,
): Promise<boolean> {
  const { id, status, failure, txHash, blockNumber } = parameters
  return settle(db, { id, from: 'pending', to: status, txHash, blockNumber }, (transaction) =>
    updateProofs(transaction, id, 'pending_onchain', { status: 'onchain_failed', failure }),
  )
}

export function lose({ db, jobs }: Deps, { id }: { id: number }): Promise<boolean> {
  return settle(db, { id, from: 'pending', to: 'lost' }, (transaction) => release({ transaction, jobs }, { id }))
}

type Settling = {
  id: number
  from: OpenPublication['status']
  to: Exclude<Selectable<Tables['publications']>['status'], 'pending'>
} & Partial<MinedAt>

/** Moves a publication and its proofs, or neither: of two callers that settle it one wins. */
function settle(
  db: Kysely<Tables>,
  { id, from, to, txHash, blockNumber }: Settling,
  andThen: (transaction: Transaction<Tables>) => Promise<void> = async () => {},
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('publications')
      .set({ status: to })
      .$if(txHash !== undefined && blockNumber !== undefined, (update) =>
        update.set({ tx_hash: toBytes(txHash ?? ''), block_number: blockNumber ?? 0 }),
      )
      .where(isId(id))
      .where('status', '=', from)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    await andThen(transaction)
    return true
  })
}

type ProofChanges = {
  status?: 'complete' | 'onchain_failed'
  failure?: PublishFailure
  onchain_tx_hash?: Uint8Array
  onchain_block_number?: number
  publication_id?: null
  publish_limit?: number
}

async function updateProofs(
  transaction: Transaction<Tables>,
  id: number,
  status: 'pending_onchain' | 'complete',
  changes: ProofChanges,
): Promise<void> {
  await transaction
    .updateTable('attestations')
    .set(changes)
    .where('publication_id', '=', id)
    .where('status', '=', status)
    .execute()
}

/** The proofs are due again, with a job that finds them. */
async function release(
  { transaction, jobs }: { transaction: Transaction<Tables>; jobs: Jobs },
  { id, publishLimit }: { id: number; publishLimit?: number },
): Promise<void> {
  await updateProofs(transaction, id, 'pending_onchain', {
    publication_id: null,
    ...(publishLimit === undefined ? {} : { publish_limit: publishLimit }),
  })
  await jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {} }])
}
