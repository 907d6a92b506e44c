import type { Hex } from '@countersign/protocol'
import { recoverTransactionAddress } from 'viem'
import { keccak256, parseTransaction, serializeTransaction } from 'viem/utils'

export type FakeChainTransaction = {
  hash: Hex
  raw: Hex
  /** Lower case, as all addresses here. */
  from: Hex
  to: Hex | undefined
  nonce: number
  value: bigint
  data: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

/** What a node answers as an error. */
export class RpcError extends Error {
  override name = 'RpcError'
  readonly code: number
  readonly data: Hex | undefined
  constructor(code: number, message: string, data?: Hex) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** An error of geth's pool, in its words. */
export const refuse = (message: string) => new RpcError(-32000, message)

export const lower = (text: unknown) => String(text).toLowerCase() as Hex

/** A signed EIP-1559 transaction for this chain, in the one spelling that has its hash. */
export async function readTransaction(raw: unknown, chainId: number): Promise<FakeChainTransaction> {
  if (!String(raw).startsWith('0x02')) throw refuse('transaction type not supported')
  const serialized = lower(raw) as `0x02${string}`
  let parsed: ReturnType<typeof parseTransaction<typeof serialized>>
  let from: Hex
  try {
    parsed = parseTransaction(serialized)
    from = lower(await recoverTransactionAddress({ serializedTransaction: serialized }))
  } catch {
    throw refuse('rlp: the transaction cannot be decoded')
  }
  if (serializeTransaction(parsed) !== serialized) throw refuse('rlp: the transaction cannot be decoded')
  if (parsed.chainId !== chainId) throw refuse(`invalid chain id for signer: have ${parsed.chainId} want ${chainId}`)
  const { to, nonce = 0, value = 0n, data = '0x', gas = 0n, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parsed
  return {
    hash: keccak256(serialized),
    raw: serialized,
    from,
    to: to ? lower(to) : undefined,
    nonce,
    value,
    data,
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas,
  }
}

/** EIP-1559: the tip is what the cap leaves above the base fee, at most. */
export function priceOf({ maxFeePerGas, maxPriorityFeePerGas }: FakeChainTransaction, baseFee: bigint): bigint {
  const price = baseFee + maxPriorityFeePerGas
  return price < maxFeePerGas ? price : maxFeePerGas
}

/** 21,000, and 4 for each zero byte, 16 for each other (EIP-2028). */
export function intrinsicGas(data: Hex): bigint {
  return Buffer.from(data.slice(2), 'hex').reduce((sum, byte) => sum + (byte === 0 ? 4n : 16n), 21_000n)
}
