import { type Hex, ServiceError, type SignResult } from '@countersign/protocol'
import type { PublicClient } from 'viem'
import { createError, type SdkErrorCode } from './errors.ts'
import { isHex, isObject } from './parseResources.ts'
import { askRpc, findRefusal, RPC_TIMEOUT_MS, toWords } from './rpc.ts'
import { withTimeLimit } from './withTimeLimit.ts'

/** The words of geth, its relatives, nethermind, besu and hardhat; there is no code for them. */
const ALREADY_KNOWN = /already ?known|known transaction|already imported/i
const REFUSALS: { pattern: RegExp; code: SdkErrorCode; message: string }[] = [
  {
    pattern: /insufficient ?(?:funds|balance)|enough funds/i,
    code: 'rpc_insufficient_funds',
    message: 'the wallet cannot pay value and fees',
  },
  {
    pattern: /underpriced|less than block base fee|fee ?too ?low/i,
    code: 'rpc_underpriced',
    message: 'the RPC wants higher fees',
  },
  {
    pattern: /intrinsic gas|gas ?limit|at least \d+ gas|floor data gas|gas too low|out of gas/i,
    code: 'rpc_gas_rejected',
    message: 'the gas is too low, or more than a block takes',
  },
]
const NONCE_TOO_LOW = /nonce (?:is )?too low|noncetoolow|oldnonce|nonce has already been used/i

export type BroadcastParameters = { serializedTransaction: Hex; signed: SignResult }

/**
 * Sends signed bytes. It sends them once and signs nothing: where the outcome is not plain, it asks the RPC for the hash. Every
 * failure carries `signed`, since the proof becomes public whatever happens here.
 */
export async function broadcast(
  publicClient: PublicClient,
  { serializedTransaction, signed }: BroadcastParameters,
): Promise<void> {
  let answer: unknown
  try {
    const limit = { limitMs: RPC_TIMEOUT_MS, createError: () => new Error('no answer in time') }
    answer = await withTimeLimit(limit, () => publicClient.sendRawTransaction({ serializedTransaction }))
  } catch (cause) {
    return judgeFailure(publicClient, { cause, signed })
  }
  if (!isHex(answer, 32)) {
    return judgeFailure(publicClient, { cause: new Error('the RPC answered without a hash'), signed })
  }
  if (answer.toLowerCase() !== signed.txHash) {
    const details = `sent ${signed.txHash}, the RPC answered ${answer}`
    throw createError('rpc_hash_mismatch', 'the RPC named another transaction', { details, signed })
  }
}

async function judgeFailure(
  publicClient: PublicClient,
  { cause, signed }: { cause: unknown; signed: SignResult },
): Promise<void> {
  const details = toWords(cause)
  const words = findRefusal(cause) === undefined ? undefined : (details ?? '')
  const refusal = words === undefined ? undefined : REFUSALS.find(({ pattern }) => pattern.test(words))
  if (refusal) throw createError(refusal.code, refusal.message, { details, cause, signed })
  // These very bytes are there already: whoever brought them, they were sent.
  if (words !== undefined && ALREADY_KNOWN.test(words)) return
  if (await isKnown(publicClient, signed.txHash)) return
  if (words === undefined) {
    const unknown = `${details}; the RPC does not know ${signed.txHash} yet`
    throw createError('broadcast_unknown', 'the outcome of the broadcast is unknown', {
      details: unknown,
      cause,
      signed,
    })
  }
  if (NONCE_TOO_LOW.test(words)) {
    throw createError('rpc_nonce_too_low', 'another transaction took this nonce', { details, cause, signed })
  }
  throw createError('rpc_failed', 'the RPC refused the transaction', { details, cause, signed })
}

async function isKnown(publicClient: PublicClient, hash: Hex): Promise<boolean> {
  try {
    const found: unknown = await askRpc(() =>
      publicClient.request({ method: 'eth_getTransactionByHash', params: [hash] }),
    )
    return isObject(found) && found.hash === hash
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}
