import type { Hex } from '@countersign/protocol'
import { decodeErrorResult } from 'viem/utils'
import type { ChainErrorCode } from './chainError.ts'
import { publisherAbi } from './contract.ts'

/** A node's error: JSON-RPC 2.0 §5.1. */
export type NodeError = { code: number; message: string; data?: unknown }

export type NodeVerdict =
  /** Not a failure: the transaction is in the node's mempool. */
  | 'already_known'
  | Extract<
      ChainErrorCode,
      | 'chain_unavailable'
      | 'call_reverted'
      | 'nonce_too_low'
      | 'nonce_gap'
      | 'underpriced'
      | 'insufficient_funds'
      | 'transaction_refused'
    >

/**
 * Matches the nodes' messages, because their codes are vague (geth uses -32000 for nearly everything). The first match counts.
 *
 * - geth: core/error.go, core/txpool/errors.go, internal/ethapi/errors.go (code 3 for a revert)
 * - reth: rpc-eth-types/src/error/mod.rs (RpcPoolError mirrors geth), transaction-pool/src/error.rs
 * - erigon: txpoolcfg/txpoolcfg.go (DiscardReason), with the import result before it: `INTERNAL_ERROR: …`
 * - nethermind: TxPool/TxPoolErrorMessages.cs; before 2026 the bare names of AcceptTxResult, with -32010
 * - hardhat: edr_provider/src/error.rs
 */
const texts: readonly (readonly [NodeVerdict, RegExp])[] = [
  // First, because a contract's reason is arbitrary: "execution reverted: nonce too low".
  ['call_reverted', /execution reverted|reverted with|transaction reverted|vm exception|vm execution error/],
  ['call_reverted', /gas required exceeds allowance|ran out of gas/],
  ['already_known', /already known|alreadyknown|known transaction|already imported|existing txn? with same hash/],
  ['nonce_too_low', /nonce (is )?too low|oldnonce/],
  ['nonce_gap', /nonce (is )?too high|nonce ?gap|gapped-nonce|nonce ?too ?far ?in ?future/],
  ['insufficient_funds', /insufficient ?funds|doesn't have enough funds|upfront cost exceeds account balance/],
  // The pool is at fault, not the transaction.
  ['chain_unavailable', /(pool|sub-pool) is full|in-flight transaction limit|account limit exceeded|spammer|syncing/],
  ['underpriced', /underpriced|fee ?too ?low|less than block base fee|too low for the next block/],
  ['underpriced', /replacement ?not ?allowed|could not replace existing tx|below (the )?minimum/],
  ['chain_unavailable', /header not found|missing trie node|rate limit|too many requests|time(d )?out/],
]

const codes: ReadonlyMap<number, NodeVerdict> = new Map([
  [3, 'call_reverted'], // geth and compatible nodes
  [-32015, 'call_reverted'], // older nethermind
  [-32000, 'transaction_refused'],
  [-32003, 'transaction_refused'], // EIP-1474: transaction rejected
  [-32010, 'transaction_refused'], // nethermind
  [-32602, 'transaction_refused'], // reth, for bytes that are not a transaction
])

/** Classifies an error of `eth_sendRawTransaction` or `eth_estimateGas`. Unknown errors are retried. */
export function classifyNodeError({ code, message }: NodeError): NodeVerdict {
  const text = message.toLowerCase()
  return texts.find(([, pattern]) => pattern.test(text))?.[0] ?? codes.get(code) ?? 'chain_unavailable'
}

/** Returns the name of the contract's error, if it is known. */
export function describeRevert({ data }: NodeError): string {
  const revertData = findHex(data)
  if (revertData === undefined || revertData.length < 10) return 'no reason'
  try {
    // The types omit Solidity's built-in errors, which the function decodes too.
    const { errorName, args }: { errorName: string; args?: readonly unknown[] | undefined } = decodeErrorResult({
      abi: publisherAbi,
      data: revertData,
    })
    return errorName === 'Error' ? `Error: ${toPlainText(String(args?.[0]))}` : errorName
  } catch {
    return `an unknown error, ${revertData.slice(0, 10)}`
  }
}

/** Whether a reason is one of the contract's errors. Others come only from the node. */
export function isOfContract(reason: string | undefined): boolean {
  return publisherAbi.some((item) => item.type === 'error' && item.name === reason)
}

/** Finds revert data: geth returns it as text, older nethermind after a word (`Reverted 0x…`), hardhat one level deeper. */
function findHex(data: unknown): Hex | undefined {
  const text = typeof data === 'object' && data !== null && 'data' in data ? data.data : data
  if (typeof text !== 'string') return undefined
  return /0x(?:[0-9a-f]{2})*$/i.exec(text)?.[0].toLowerCase() as Hex | undefined
}

/** Keeps foreign text short and printable, so that it can't garble a log. */
export function toPlainText(text: string): string {
  return text.slice(0, 200).replace(/[^\x20-\x7e]/g, '?')
}
