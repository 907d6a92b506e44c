import type { TransactionSummary } from '@countersign/sdk'
import { describe, expect, test } from 'vitest'
import type { Incoming } from '../incoming/payment.ts'
import { toEntries, withNewest, withOlder, withStatus } from './pages.ts'

const item = (slug: string, status: TransactionSummary['status'] = 'complete'): TransactionSummary => ({
  slug,
  status,
  txHash: '0x',
  chainId: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  to: '0x',
  value: '0',
  data: '0x',
  nonce: 0,
})
const page = (slugs: string, nextCursor: string | null = null) => ({
  transactions: [...slugs].map((slug) => item(slug)),
  nextCursor,
})
const slugsOf = ({ transactions }: { transactions: readonly TransactionSummary[] }) =>
  transactions.map(({ slug }) => slug).join('')

describe('withNewest', () => {
  test('returns the first page', () => {
    expect(withNewest(null, page('cb', '1'))).toEqual(page('cb', '1'))
  })

  test('keeps older pages and their cursor', () => {
    const known = withNewest(page('dcba', '0'), page('ed', '9'))
    expect([slugsOf(known), known.nextCursor]).toEqual(['edcba', '0'])
  })

  test('updates the status of known transactions', () => {
    const known = { transactions: [item('b', 'pending_pin'), item('a')], nextCursor: null }
    expect(withNewest(known, page('b', '1')).transactions[0]).toEqual(item('b'))
  })

  test('starts again if there may be a gap', () => {
    expect(withNewest(page('ba', '0'), page('yx', '9'))).toEqual(page('yx', '9'))
  })

  test('uses the cursor of a page that includes everything known', () => {
    expect(withNewest(page('b', null), page('cb', null))).toEqual(page('cb', null))
  })
})

test('withOlder adds each transaction once, even if the list has changed', () => {
  const known = withOlder(page('dc', '2'), page('cba', null))
  expect([slugsOf(known), known.nextCursor]).toEqual(['dcba', null])
})

test('withStatus updates only one proof', () => {
  const known = { transactions: [item('b', 'pending_pin'), item('a', 'pending_pin')], nextCursor: '1' }
  expect(withStatus(known, { slug: 'a', status: 'complete' })).toEqual({
    transactions: [item('b', 'pending_pin'), item('a')],
    nextCursor: '1',
  })
})

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString()
const signed = (minute: number) => ({ slug: `s${minute}`, createdAt: at(minute) }) as TransactionSummary
const received = (minute: number) => ({ key: `r${minute}`, time: at(minute) }) as Incoming
const keysOf = (nextCursor: string | null, minutes: number[]) =>
  toEntries({ transactions: [signed(30), signed(20)], nextCursor }, minutes.map(received)).map(({ key }) => key)

test('sorts incoming and outgoing entries, newest first', () => {
  expect(keysOf(null, [25, 35, 5])).toEqual(['r35', 's30', 'r25', 's20', 'r5'])
})

test('hides payments older than the last loaded page', () => {
  expect(keysOf('1', [25, 35, 5])).toEqual(['r35', 's30', 'r25', 's20'])
})

test('shows incoming payments if nothing was signed', () => {
  const entries = toEntries({ transactions: [], nextCursor: null }, [received(1)])
  expect(entries).toHaveLength(1)
})
