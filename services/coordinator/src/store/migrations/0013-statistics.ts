import { type Kysely, sql } from 'kysely'

/**
 * No plan uses statistics of these. PostgreSQL made them again each time that a tenth of a table had changed, and took longest to sort
 * documents.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [table, columns] of Object.entries(unused)) {
    const changes = columns.map((column) => `alter column ${column} set statistics 0`)
    await sql.raw(`alter table ${table} ${changes.join(', ')}`).execute(db)
  }
}

const unused = {
  attestations: ['statement', 'path', 'witness', 'release', 'approvals'],
  batches: ['measurement', 'config'],
  log_entries: ['entry'],
  pending_transactions: ['signature', 'tx_metadata', 'subject'],
  releases: ['settings', 'ed25519'],
  wallets: ['witness'],
  webhook_events: ['data'],
}
