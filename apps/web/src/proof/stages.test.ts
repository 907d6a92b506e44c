import { proofStatuses } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { toStages } from './ServiceClaims.tsx'

test('shows the stages of each status (specification §3)', () => {
  const pictures = Object.fromEntries(
    proofStatuses.map((status) => [
      status,
      toStages(status)
        .map(({ state }) => state)
        .join(' '),
    ]),
  )
  expect(pictures).toEqual({
    pending_pin: 'done current waiting waiting',
    pending_onchain: 'done done current waiting',
    complete: 'done done done done',
    pin_failed: 'done failed never never',
    onchain_failed: 'done done failed never',
  })
})
