import { type Hex, ServiceError } from '@countersign/sdk'
import { getAddress, type PublicClient } from 'viem'
import type { Token } from '../config.ts'

/** `transfer(address,uint256)` of ERC-20. */
const TRANSFER_SELECTOR = '0xa9059cbb'
const TRANSFER = /^0xa9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})/

/** A token transfer, in the token's smallest unit. */
export type TransferCall = { recipient: Hex; amount: bigint }

export function toTransferData({ recipient, amount }: TransferCall): Hex {
  const words = [recipient.slice(2).toLowerCase(), amount.toString(16)].map((word) => word.padStart(64, '0'))
  return `${TRANSFER_SELECTOR}${words.join('')}`
}

/** Parses a transfer call. Returns undefined for other calls. Contracts ignore bytes after the two arguments. */
export function parseTransferData(data: string): TransferCall | undefined {
  const [, recipient, amount] = TRANSFER.exec(data.toLowerCase()) ?? []
  if (recipient === undefined || amount === undefined) return undefined
  return { recipient: getAddress(`0x${recipient}`), amount: BigInt(`0x${amount}`) }
}

/** `balanceOf(address)` of ERC-20. */
const BALANCE_OF = '0x70a08231'

/** Reads a token balance in its smallest unit. Rejects if the contract doesn't exist. */
export async function readTokenBalance(
  chain: Pick<PublicClient, 'call'>,
  { token, holder }: { token: Token; holder: Hex },
): Promise<bigint> {
  const { data } = await chain.call({
    to: token.address,
    data: `${BALANCE_OF}${holder.slice(2).toLowerCase().padStart(64, '0')}`,
  })
  if (data === undefined || !/^0x[0-9a-f]{64}$/i.test(data))
    throw new ServiceError('rpc_failed', 'the RPC failed', { details: `${token.symbol} is not a token on this chain` })
  return BigInt(data)
}
