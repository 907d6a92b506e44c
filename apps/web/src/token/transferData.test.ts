import { encodeFunctionData, erc20Abi } from 'viem'
import { expect, test } from 'vitest'
import { parseTransferData, toTransferData } from './erc20.ts'

const recipient = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

test.each([0n, 1n, 10n ** 18n, (1n << 256n) - 1n])('encodes %d like viem and decodes it', (amount) => {
  const data = toTransferData({ recipient, amount })
  expect(data).toBe(encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [recipient, amount] }))
  expect(parseTransferData(data)).toEqual({ recipient, amount })
})

const data = toTransferData({ recipient, amount: 5n })

test('ignores bytes after the arguments', () => {
  expect(parseTransferData(`${data}ff`)).toEqual({ recipient, amount: 5n })
})

test.each([
  ['nothing', '0x'],
  ['another function', data.replace('a9059cbb', '095ea7b3')],
  ['half an amount', data.slice(0, -1)],
  ['a recipient of more than 20 bytes', data.replace('a9059cbb00', 'a9059cbb01')],
])('does not read %s as a transfer', (_, other) => {
  expect(parseTransferData(other)).toBeUndefined()
})
