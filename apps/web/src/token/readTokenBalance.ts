import { type Hex, ServiceError } from '@countersign/sdk'
import type { PublicClient } from 'viem'
import type { Token } from '../config.ts'

/** `balanceOf(address)` of ERC-20. */
const SELECTOR = '0x70a08231'

/** What an address holds of a token, in its smallest unit. Rejects where there is no such contract. */
export async function readTokenBalance(
  chain: Pick<PublicClient, 'call'>,
  { token, holder }: { token: Token; holder: Hex },
): Promise<bigint> {
  const { data } = await chain.call({
    to: token.address,
    data: `${SELECTOR}${holder.slice(2).toLowerCase().padStart(64, '0')}`,
  })
  if (data === undefined || !/^0x[0-9a-f]{64}$/i.test(data))
    throw new ServiceError('rpc_failed', 'the RPC failed', { details: `${token.symbol} is not a token on this chain` })
  return BigInt(data)
}
