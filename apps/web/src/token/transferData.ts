import type { Hex } from '@countersign/sdk'
import { getAddress } from 'viem'

/** `transfer(address,uint256)` of ERC-20. */
const SELECTOR = '0xa9059cbb'
const TRANSFER = /^0xa9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})/

/** What a token pays, in its smallest unit. */
export type TransferCall = { recipient: Hex; amount: bigint }

/** The call with which a token is sent. */
export function toTransferData({ recipient, amount }: TransferCall): Hex {
  const words = [recipient.slice(2).toLowerCase(), amount.toString(16)].map((word) => word.padStart(64, '0'))
  return `${SELECTOR}${words.join('')}`
}

/** Reads that call back; undefined for any other. What follows the two arguments changes nothing: contracts do not read it. */
export function parseTransferData(data: string): TransferCall | undefined {
  const [, recipient, amount] = TRANSFER.exec(data.toLowerCase()) ?? []
  if (recipient === undefined || amount === undefined) return undefined
  return { recipient: getAddress(`0x${recipient}`), amount: BigInt(`0x${amount}`) }
}
