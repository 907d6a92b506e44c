import type { ProofStatus, TransactionPage, TransactionSummary } from '@countersign/sdk'
import type { Incoming } from '../incoming/payment.ts'

/** What is known of the history: always the newest part of it, without gaps. */
export type Known = { transactions: readonly TransactionSummary[]; nextCursor: string | null }

/** Puts the newest page in front of what is known. */
export function withNewest(known: Known | null, page: TransactionPage): Known {
  if (known === null) return page
  const fresh = new Set(page.transactions.map(({ slug }) => slug))
  const older = known.transactions.filter(({ slug }) => !fresh.has(slug))
  // All of it was new, so there may be others in between: what is older is fetched again when it is asked for.
  const hasGap = older.length === known.transactions.length && older.length > 0 && page.nextCursor !== null
  if (hasGap || older.length === 0) return page
  return { transactions: [...page.transactions, ...older], nextCursor: known.nextCursor }
}

/** Puts an older page behind what is known. */
export function withOlder(known: Known, page: TransactionPage): Known {
  const seen = new Set(known.transactions.map(({ slug }) => slug))
  const older = page.transactions.filter(({ slug }) => !seen.has(slug))
  return { transactions: [...known.transactions, ...older], nextCursor: page.nextCursor }
}

/** Sets the status of one proof. */
export function withStatus(known: Known, { slug, status }: { slug: string; status: ProofStatus }): Known {
  const transactions = known.transactions.map((item) => (item.slug === slug ? { ...item, status } : item))
  return { ...known, transactions }
}

/** A line of the history. */
type Entry =
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
