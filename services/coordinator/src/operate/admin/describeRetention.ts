import type { RetentionCount } from '../../store/retention.ts'

/** What an operator wants to know: what is there, what went, and how to get its space back. */
export function describeRetention({ held, dropped, databaseBytes }: RetentionCount): string {
  const lines = [
    `The database takes ${toSize(databaseBytes)} on disk.`,
    `Receipts in it: ${held.receipts}, ${toSize(held.bytes)} as they are stored.`,
    `Receipts on IPFS alone: ${dropped.receipts}, which took ${toSize(dropped.bytes)}.`,
  ]
  const all = held.bytes + dropped.bytes
  if (dropped.receipts > 0) {
    lines.push(
      `That is ${Math.round((100 * dropped.bytes) / all)} % of what all receipts would take. PostgreSQL uses the space for new rows; VACUUM FULL or pg_repack gives it back to the system.`,
    )
  }
  return lines.join('\n')
}

function toSize(bytes: number): string {
  if (bytes < 2 ** 20) return `${(bytes / 2 ** 10).toFixed(1)} KiB`
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(2)} GiB`
}
