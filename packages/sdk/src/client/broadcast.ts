import { type Hex, isPrefixedHex, type SignResult } from '@countersign/protocol'
import type { PublicClient } from 'viem'
import { createError, type SdkErrorCode } from './errors.ts'
import { findRefusal, isKnown, toWords } from './rpc.ts'

/** Messages of geth, nethermind, besu and hardhat. They have no codes. */
const ALREADY_KNOWN = /already ?known|\bknown transaction|already imported/i
const REFUSALS: [RegExp, SdkErrorCode, string][] = [
  [/insufficient ?(?:funds|balance)|enough funds/i, 'rpc_insufficient_funds', 'the wallet cannot pay'],
  [/underpriced|less than block base fee|fee ?too ?low/i, 'rpc_underpriced', 'the RPC wants higher fees'],
  [
    /intrinsic gas|gas ?limit|at least \d+ gas|floor data gas|gas too low|out of gas/i,
    'rpc_gas_rejected',
    'wrong gas limit',
  ],
  [/type not supported/i, 'rpc_failed', 'the RPC failed'],
]
const NONCE_TOO_LOW = /nonce (?:is )?too low|noncetoolow|oldnonce|nonce has already been used/i

export type BroadcastParameters = { serializedTransaction: Hex; signed: SignResult }

/**
 * Sends a signed transaction once. If the outcome is unclear, it asks the RPC for the hash. Every error has `signed`, because the
 * proof becomes public anyway.
 */
export async function broadcast(
  publicClient: PublicClient,
  { serializedTransaction, signed }: BroadcastParameters,
): Promise<void> {
  let answer: Hex
  try {
    answer = await publicClient.sendRawTransaction({ serializedTransaction })
    if (!isPrefixedHex(answer, 32)) throw new Error()
  } catch (cause) {
    return resolveFailure(publicClient, { cause, signed })
  }
  if (answer.toLowerCase() !== signed.txHash) {
    const details = `sent ${signed.txHash}, got ${answer}`
    throw createError('rpc_hash_mismatch', 'the RPC has another transaction', { details, signed })
  }
}

async function resolveFailure(
  publicClient: PublicClient,
  { cause, signed }: { cause: unknown; signed: SignResult },
): Promise<void> {
  const details = toWords(cause)
  const words = findRefusal(cause) ? details : ''
  for (const [pattern, code, message] of REFUSALS) {
    if (pattern.test(words)) throw createError(code, message, { details, cause, signed })
  }
  // The RPC has exactly these bytes.
  if (ALREADY_KNOWN.test(words)) return
  // Undefined if the RPC didn't answer: the transaction that used the nonce may be this one.
  const known = await isKnown(publicClient, signed.txHash).catch(() => undefined)
  if (known) return
  if (known === false && NONCE_TOO_LOW.test(words)) {
    throw createError('rpc_nonce_too_low', 'the nonce is taken', { details, cause, signed })
  }
  // After other messages ("internal error", "request timed out"), the RPC may still have accepted the transaction.
  throw createError('broadcast_unknown', 'the RPC may have the transaction', {
    details: `${details}; look for ${signed.txHash}`,
    cause,
    signed,
  })
}
