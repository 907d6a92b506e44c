import type { TransactionSummary } from '@countersign/sdk'
import { expect, test } from 'vitest'
import type { Incoming } from '../incoming/payment.ts'
import { toEntries } from './pages.ts'

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString()
const signed = (minute: number) => ({ slug: `s${minute}`, createdAt: at(minute) }) as TransactionSummary
const received = (minute: number) => ({ key: `r${minute}`, time: at(minute) }) as Incoming
const keysOf = (nextCursor: string | null, minutes: number[]) =>
  toEntries({ transactions: [signed(30), signed(20)], nextCursor }, minutes.map(received)).map(({ key }) => key)

test('newest first, whichever way it went', () => {
  expect(keysOf(null, [25, 35, 5])).toEqual(['r35', 's30', 'r25', 's20', 'r5'])
})

test('what is older than the last page waits for the next', () => {
  expect(keysOf('1', [25, 35, 5])).toEqual(['r35', 's30', 'r25', 's20'])
})

test('where nothing was signed, what came in is all', () => {
  const entries = toEntries({ transactions: [], nextCursor: null }, [received(1)])
  expect(entries).toHaveLength(1)
})
