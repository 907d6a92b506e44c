import { RpcRefusal } from '../createRpc.ts'
import type { AccountReader, Head } from './createAccountReader.ts'

/** The use of a nonce. */
export type NonceUse =
  /**
   * The hashes as in events. A block may include several authorizations with one nonce, of which one takes effect. Which one depends on the
   * nonce before each, which code on the account can change unnoticed. So each of them may have used it.
   */
  | { kind: 'transaction' | 'authorization'; hashes: readonly string[]; blockNumber: number; time: Date }
  | { kind: 'code'; blockNumber: number }
  /** The node has no state for a search. The nonce was used in this block or before. */
  | { kind: 'not-shown'; untilBlock: number; detail: string }

export type FindNonceUseParameters = {
  nonce: number
  head: Head
  /** The nonce is not used in this block or any before it; -1 for before the first. */
  before: number
  /** The nonce is used in this block or one before it. */
  until: number
}

/** All nodes keep the state of this many recent blocks. */
const KEPT_BLOCKS = 64

/** Finds the block in which a nonce was used by bisection, and what in that block used it. */
export async function findNonceUse(
  reader: AccountReader,
  { nonce, head, before, until }: FindNonceUseParameters,
): Promise<NonceUse> {
  let [low, high] = [before, until]
  // Recent blocks first: nodes without old state can only answer for those.
  let middle = Math.max(low, head.number - KEPT_BLOCKS)
  if (middle <= low || middle >= high) middle = Math.floor((low + high) / 2)
  while (high - low > 1) {
    try {
      if ((await reader.getCount(middle)) > nonce) high = middle
      else low = middle
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error
      return { kind: 'not-shown', untilBlock: high, detail: error.details ?? error.message }
    }
    middle = Math.floor((low + high) / 2)
  }
  const blockNumber = high
  const { transactions, authorizations, time } = await reader.getBlock(blockNumber)
  const transaction = transactions.find((item) => item.nonce === nonce)
  if (transaction !== undefined) return { kind: 'transaction', hashes: [transaction.hash], blockNumber, time }
  const signed = authorizations.filter((item) => item.nonce === nonce).map(({ hash }) => hash)
  if (signed.length > 0) return { kind: 'authorization', hashes: [...new Set(signed)], blockNumber, time }
  // A contract's account uses a nonce for each contract that it creates. With a delegation, the wallet is such an account.
  if ((await reader.getCode(blockNumber)) !== '0x') return { kind: 'code', blockNumber }
  throw reader.contradiction(`nonce ${nonce} is used in block ${blockNumber}, but nothing in that block uses it`)
}
