import { expect, test } from 'vitest'
import { isProofStatus, isProofTransition, isTerminalProofStatus, proofStatuses } from './proofStatus.ts'

test('specification §3: allows exactly these transitions', () => {
  const moves = proofStatuses.flatMap((from) =>
    proofStatuses.filter((to) => isProofTransition(from, to)).map((to) => `${from} > ${to}`),
  )
  expect(moves).toEqual([
    'pending_pin > pending_onchain',
    'pending_pin > pin_failed',
    'pending_onchain > complete',
    'pending_onchain > onchain_failed',
  ])
})

test('specification §3: terminal states', () => {
  expect(proofStatuses.filter(isTerminalProofStatus)).toEqual(['complete', 'pin_failed', 'onchain_failed'])
})

test('specification §2: has exactly five states', () => {
  expect(proofStatuses.every(isProofStatus)).toBe(true)
  for (const other of ['pending', 'Complete', '', 'toString', null, undefined, 0, ['complete']])
    expect(isProofStatus(other)).toBe(false)
})
