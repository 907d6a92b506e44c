import type { TransactionSummary } from '@countersign/sdk'
import type { Incoming } from '../incoming/payment.ts'
import type { Known } from './pages.ts'

/** A line of the history. */
export type Entry =
  | { key: string; time: string; signed: TransactionSummary }
  | { key: string; time: string; received: Incoming }

/** What was signed and what came in, newest first. What is older than the last page that was fetched waits for the next. */
export function toEntries({ transactions, nextCursor }: Known, payments: readonly Incoming[]): Entry[] {
  const signed = transactions.map((one): Entry => ({ key: one.slug, time: one.createdAt, signed: one }))
  const oldest = nextCursor === null ? undefined : signed.at(-1)?.time
  const received = payments
    .map((one): Entry => ({ key: one.key, time: one.time, received: one }))
    .filter(({ time }) => oldest === undefined || Date.parse(time) >= Date.parse(oldest))
  return [...signed, ...received].toSorted((left, right) => Date.parse(right.time) - Date.parse(left.time))
}
