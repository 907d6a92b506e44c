import { type PublicClient, toHex } from 'viem'

/** Where rollups of the OP stack, Base among them, keep the price of data on the chain below. */
const GAS_PRICE_ORACLE = '0x420000000000000000000000000000000000000F'
/** `getL1FeeUpperBound(uint256 unsignedTxSize)`. */
const SELECTOR = '0xf1c7a58b'
/** What a transaction has around its data, without the signature. */
const TRANSACTION_BYTES = 120

/** What a rollup takes beside gas for a transaction with so much data; 0 on other chains, where nobody answers. */
export async function readDataFee(chain: Pick<PublicClient, 'call'>, dataBytes: number): Promise<bigint> {
  const size = toHex(TRANSACTION_BYTES + dataBytes, { size: 32 }).slice(2)
  try {
    const { data } = await chain.call({ to: GAS_PRICE_ORACLE, data: `${SELECTOR}${size}` })
    return data !== undefined && /^0x[0-9a-f]{64}$/i.test(data) ? BigInt(data) : 0n
  } catch {
    return 0n
  }
}
