import type { Hex } from '@countersign/protocol'
import { recoverTransactionAddress } from 'viem'
import { keccak256, parseTransaction, serializeTransaction } from 'viem/utils'
import { RpcError } from './RpcError.ts'
import { lower } from './values.ts'

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

/** A signed EIP-1559 transaction for this chain, in the one spelling that has its hash. */
export async function readTransaction(raw: unknown, chainId: number): Promise<FakeChainTransaction> {
  if (typeof raw !== 'string' || !/^0x(?:[0-9a-f]{2})+$/i.test(raw)) throw new RpcError(-32602, 'invalid argument 0')
  if (!raw.startsWith('0x02')) throw new RpcError(-32000, 'transaction type not supported')
  const serialized = lower(raw) as `0x02${string}`
  const parsed = parse(serialized)
  if (parsed?.r === undefined || serializeTransaction(parsed) !== serialized) {
    throw new RpcError(-32000, 'rlp: the transaction cannot be decoded')
  }
  if (parsed.chainId !== chainId) {
    throw new RpcError(-32000, `invalid chain id for signer: have ${parsed.chainId} want ${chainId}`)
  }
  let from: Hex
  try {
    from = lower(await recoverTransactionAddress({ serializedTransaction: serialized }))
  } catch {
    throw new RpcError(-32000, 'invalid sender')
  }
  return {
    hash: keccak256(serialized),
    raw: serialized,
    from,
    to: parsed.to ? lower(parsed.to) : undefined,
    nonce: parsed.nonce ?? 0,
    value: parsed.value ?? 0n,
    data: parsed.data ?? '0x',
    gas: parsed.gas ?? 0n,
    maxFeePerGas: parsed.maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: parsed.maxPriorityFeePerGas ?? 0n,
  }
}

function parse(serialized: `0x02${string}`) {
  try {
    return parseTransaction(serialized)
  } catch {
    return undefined
  }
}

/** EIP-1559: the tip is what the cap leaves above the base fee, at most. */
export function priceOf({ maxFeePerGas, maxPriorityFeePerGas }: FakeChainTransaction, baseFee: bigint): bigint {
  const price = baseFee + maxPriorityFeePerGas
  return price < maxFeePerGas ? price : maxFeePerGas
}

/** 21,000, and 4 for each zero byte, 16 for each other (EIP-2028). */
export function intrinsicGas(data: Hex): bigint {
  const bytes = Buffer.from(data.slice(2), 'hex')
  return bytes.reduce((sum, byte) => sum + (byte === 0 ? 4n : 16n), 21_000n)
}
