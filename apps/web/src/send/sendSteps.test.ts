import { expect, test } from 'vitest'
import { type Inclusion, toSendSteps } from './sendSteps.ts'

const included: Inclusion = { state: 'included', blockNumber: 7n }
const statesOf = (...progress: Parameters<typeof toSendSteps>) => toSendSteps(...progress).map(({ state }) => state)

test.each([
  [{ state: 'waiting' } as const, undefined, ['done', 'active', 'active', 'waiting']],
  [included, 'pending_pin', ['done', 'done', 'active', 'waiting']],
  [included, 'pending_onchain', ['done', 'done', 'done', 'active']],
  [included, 'complete', ['done', 'done', 'done', 'done']],
  [included, 'pin_failed', ['done', 'done', 'failed', 'waiting']],
  [included, 'onchain_failed', ['done', 'done', 'done', 'failed']],
  // A proof can be public before its transaction is in a block, or for a transaction that fails.
  [{ state: 'waiting' } as const, 'complete', ['done', 'active', 'done', 'done']],
  [{ state: 'reverted', blockNumber: 7n } as const, 'complete', ['done', 'failed', 'done', 'done']],
] as const)('%o, %s', (inclusion, proofStatus, states) => {
  expect(statesOf({ inclusion, proofStatus })).toEqual(states)
})
