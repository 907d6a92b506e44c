import type { Hex } from '@countersign/protocol'
import { recoverTransactionAddress } from 'viem'
import { keccak256, parseTransaction, serializeTransaction } from 'viem/utils'

export type FakeChainTransaction = {
  hash: Hex
  raw: Hex
  /** Lower case, like all addresses here. */
  from: Hex
  to: Hex | undefined
  nonce: number
  value: bigint
  data: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

/** An error that a node returns. */
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

/** An error of geth's transaction pool. */
export const poolError = (message: string) => new RpcError(-32000, message)

export const lower = (text: unknown) => String(text).toLowerCase() as Hex

/** Parses a signed EIP-1559 transaction for this chain. Rejects encodings other than the hashed one. */
export async function readTransaction(raw: unknown, chainId: number): Promise<FakeChainTransaction> {
  if (!String(raw).startsWith('0x02')) throw poolError('transaction type not supported')
  const serialized = lower(raw) as `0x02${string}`
  let parsed: ReturnType<typeof parseTransaction<typeof serialized>>
  let from: Hex
  try {
    parsed = parseTransaction(serialized)
    from = lower(await recoverTransactionAddress({ serializedTransaction: serialized }))
  } catch {
    throw poolError('rlp: cannot decode the transaction')
  }
  if (serializeTransaction(parsed) !== serialized) throw poolError('rlp: cannot decode the transaction')
  if (parsed.chainId !== chainId) throw poolError(`invalid chain id for signer: have ${parsed.chainId} want ${chainId}`)
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

/** EIP-1559: the tip is limited by the difference between maximum fee and base fee. */
export function priceOf({ maxFeePerGas, maxPriorityFeePerGas }: FakeChainTransaction, baseFee: bigint): bigint {
  const price = baseFee + maxPriorityFeePerGas
  return price < maxFeePerGas ? price : maxFeePerGas
}

/** 21,000, plus 4 for each zero byte and 16 for each other byte (EIP-2028). */
export function intrinsicGas(data: Hex): bigint {
  return Buffer.from(data.slice(2), 'hex').reduce((sum, byte) => sum + (byte === 0 ? 4n : 16n), 21_000n)
}
