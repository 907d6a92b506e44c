import { encodeFunctionData, erc20Abi } from 'viem'
import { expect, test } from 'vitest'
import { parseTransferData, toTransferData } from './erc20.ts'

const recipient = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

test.each([0n, 1n, 10n ** 18n, (1n << 256n) - 1n])('%d is encoded as viem does it, and read back', (amount) => {
  const data = toTransferData({ recipient, amount })
  expect(data).toBe(encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [recipient, amount] }))
  expect(parseTransferData(data)).toEqual({ recipient, amount })
})

const data = toTransferData({ recipient, amount: 5n })

test('bytes behind the arguments change nothing', () => {
  expect(parseTransferData(`${data}ff`)).toEqual({ recipient, amount: 5n })
})

test.each([
  ['nothing', '0x'],
  ['another function', data.replace('a9059cbb', '095ea7b3')],
  ['half an amount', data.slice(0, -1)],
  ['a recipient of more than 20 bytes', data.replace('a9059cbb00', 'a9059cbb01')],
])('%s is no transfer', (_, other) => {
  expect(parseTransferData(other)).toBeUndefined()
})
