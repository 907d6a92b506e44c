import type { ProofStatus, TransactionPage, TransactionSummary } from '@countersign/sdk'
import type { Incoming } from '../incoming/payment.ts'

/** The loaded part of the history: the newest transactions, without gaps. */
export type Known = { transactions: readonly TransactionSummary[]; nextCursor: string | null }

/** Adds the newest page in front. */
export function withNewest(known: Known | null, page: TransactionPage): Known {
  if (known === null) return page
  const fresh = new Set(page.transactions.map(({ slug }) => slug))
  const older = known.transactions.filter(({ slug }) => !fresh.has(slug))
  // If the page has only new transactions, some between may be missing. Older pages are then loaded again.
  const hasGap = older.length === known.transactions.length && older.length > 0 && page.nextCursor !== null
  if (hasGap || older.length === 0) return page
  return { transactions: [...page.transactions, ...older], nextCursor: known.nextCursor }
}

/** Adds an older page. */
export function withOlder(known: Known, page: TransactionPage): Known {
  const seen = new Set(known.transactions.map(({ slug }) => slug))
  const older = page.transactions.filter(({ slug }) => !seen.has(slug))
  return { transactions: [...known.transactions, ...older], nextCursor: page.nextCursor }
}

export function withStatus(known: Known, { slug, status }: { slug: string; status: ProofStatus }): Known {
  const transactions = known.transactions.map((item) => (item.slug === slug ? { ...item, status } : item))
  return { ...known, transactions }
}

type Entry =
  | { key: string; time: string; signed: TransactionSummary }
  | { key: string; time: string; received: Incoming }

/** Merges signatures and incoming payments, newest first. Payments older than the last loaded page are left out until the next page loads. */
export function toEntries({ transactions, nextCursor }: Known, payments: readonly Incoming[]): Entry[] {
  const signed = transactions.map((one): Entry => ({ key: one.slug, time: one.createdAt, signed: one }))
  const oldest = nextCursor === null ? undefined : signed.at(-1)?.time
  const received = payments
    .map((one): Entry => ({ key: one.key, time: one.time, received: one }))
    .filter(({ time }) => oldest === undefined || Date.parse(time) >= Date.parse(oldest))
  return [...signed, ...received].toSorted((left, right) => Date.parse(right.time) - Date.parse(left.time))
}
