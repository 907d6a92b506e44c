import type { TransactionSummary } from '@countersign/sdk'
import { expect, test } from 'vitest'
import { friend, me as from, token } from '../../test/incoming/chain.ts'
import { toTransferData } from '../token/erc20.ts'
import { describeSigned } from './describeSigned.ts'

const common = { txHash: '0x01', chainId: 31337, slug: 's', status: 'complete', createdAt: '2026-01-01' } as const
const payment = { ...common, to: friend, value: '250000000000000000', data: '0x', nonce: 0 } as const
const checksummed = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const transfer = {
  ...payment,
  to: token.address,
  value: '0',
  data: toTransferData({ recipient: checksummed, amount: 1_500_000n }),
}

test.each<[string, TransactionSummary, string, string | null, string | null]>([
  ['a payment', payment, 'Sent to', friend, '−0.25 ETH'],
  ['one on another chain with ether', { ...payment, chainId: 8453 }, 'Sent to', friend, '−0.25 ETH'],
  [
    'one on a chain whose coin is not known here',
    { ...payment, chainId: 100 },
    ...(['Sent to', friend, '−0.25 coins'] as const),
  ],
  ['a payment to oneself', { ...payment, to: from }, 'Sent to yourself', null, '0.25 ETH'],
  ['a transfer of a listed token', transfer, 'Sent to', checksummed, '−1.5 TEST'],
  [
    'a transfer of a token that is not listed: its decimals are not known',
    { ...transfer, to: friend },
    'Contract call to',
    friend,
    null,
  ],
  ['the same address on another chain', { ...transfer, chainId: 1 }, 'Contract call to', token.address, null],
  [
    'a transfer that also pays ether',
    { ...transfer, value: '1' },
    'Contract call to',
    token.address,
    '−< 0.000001 ETH',
  ],
  ['another call of a token', { ...transfer, data: '0x095ea7b3' }, 'Contract call to', token.address, null],
  ['a call that pays', { ...payment, data: '0xdead' }, 'Contract call to', friend, '−0.25 ETH'],
  ['an authorization', { ...common, kind: 'authorization', implementation: friend }, 'Authorization for', friend, null],
  [
    'one that ends another',
    { ...common, kind: 'authorization', implementation: `0x${'00'.repeat(20)}` },
    ...(['Authorization to remove code', null, null] as const),
  ],
  ['a message', { ...common, kind: 'off-chain' }, 'Off-chain signature', null, null],
])('%s', (_, transaction, what, counterparty, amount) => {
  expect(describeSigned(transaction, { from, page: { chainId: 31337, tokens: [token] } })).toMatchObject({
    what,
    counterparty,
    amount,
  })
})
