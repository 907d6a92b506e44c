import { assertQuotePolicy, type Collateral, type Verifier } from '@countersign/attestation'
import {
  computeTdxReportData,
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  isHex,
  ServiceError,
  type SignedBatch,
  toHex,
} from '@countersign/protocol'
import { hashNode } from '@countersign/service/hexTree'
import type { EnclavePolicy } from '../enclave/keyEnclave.ts'
import { CoordinatorError } from '../errors.ts'
import type { SigningBatch } from '../store/batches.ts'

export type CheckBatchDeps = {
  verifier: Verifier
  policy: EnclavePolicy
  /** When the signatures were made, by their statements: verifiers judge the quote at those times. */
  at: SigningTimes
}

/** Milliseconds of the earliest and the latest. */
export type SigningTimes = { first: number; last: number }

/**
 * Step 4 of signing: the quote is genuine and of an enclave we trust, and it covers this batch. Only after that may a signature
 * of the batch be released. The quote comes back without the zeros that quoting services put after it: nothing signs them, so
 * that whoever handles the answer could add some, and the same signature would have another receipt. With it come the paths of
 * the leaves. Throws `attestation_invalid`, or `collateral_stale` when it is the collateral that has lapsed.
 */
export async function checkBatch(
  { verifier, policy, at }: CheckBatchDeps,
  { batch, config, collateral }: { batch: SignedBatch; config: EnclaveConfig; collateral: Collateral },
): Promise<Pick<SigningBatch, 'mode' | 'tcbStatus' | 'measurement' | 'quote'> & Pick<BatchTree, 'paths'>> {
  const { configHashes, commitments: _, ...quotePolicy } = policy
  try {
    const configHash = hashEnclaveConfig(config)
    if (configHashes !== undefined && !configHashes.includes(toHex(configHash))) {
      throw new CoordinatorError('attestation_invalid', 'the enclave has another configuration')
    }
    const { root, paths } = hashBatchTree(batch.leaves)
    const reportData = computeTdxReportData({
      treeSize: batch.leaves.length,
      root: fromHex(root),
      bootId: fromHex(batch.bootId),
      batchSequence: batch.sequence,
      previousBatchHash: fromHex(batch.previous),
      configHash,
    })
    const evidence = {
      quote: Buffer.from(batch.quote, 'hex'),
      collateral,
      ...(batch.eventLog === undefined ? {} : { eventLog: batch.eventLog }),
    }
    const verified = await verifier.verifyQuote({ ...evidence, at: new Date(at.first) })
    // Until then the verdict is the same. For a later time it says what has lapsed.
    if (at.last > verified.validity.notAfter) await verifier.verifyQuote({ ...evidence, at: new Date(at.last) })
    assertQuotePolicy(verified, { ...quotePolicy, reportData })
    const [rtmr0, rtmr1, rtmr2, rtmr3] = verified.body.rtmrs.map(toHex) as [string, string, string, string]
    return {
      mode: verified.root.mode,
      tcbStatus: verified.tcb.status,
      measurement: { mrTd: toHex(verified.body.mrTd), rtmr0, rtmr1, rtmr2, rtmr3 },
      quote: evidence.quote.subarray(0, evidence.quote.length - verified.flags.trailingBytes),
      paths,
    }
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause instanceof CoordinatorError) throw cause
    const isStale = cause.code.endsWith('_not_in_date')
    throw new CoordinatorError(
      isStale ? 'collateral_stale' : 'attestation_invalid',
      isStale ? 'the collateral has lapsed' : 'the enclave’s quote is not accepted',
      { details: cause.code, cause },
    )
  }
}

/** The root of a batch's tree, and the path of each leaf: hex of 32 bytes each. */
type BatchTree = { root: string; paths: string[][] }

/**
 * The protocol's `hashTree` and `createInclusionPaths` (RFC 6962 §2.1) in one pass, with the faster SHA-256. Paths share the strings of
 * their nodes. Throws `attestation_invalid` for leaves that are none.
 */
export function hashBatchTree(leaves: readonly string[]): BatchTree {
  // An empty tree has a root in RFC 6962, but an empty batch is never quoted.
  if (leaves.length === 0 || !leaves.every((leaf) => isHex(leaf, 32))) {
    throw new CoordinatorError('attestation_invalid', 'the enclave’s quote is not accepted', { details: 'leaves' })
  }
  const paths: string[][] = leaves.map(() => [])
  let level = leaves
  for (let width = 1; level.length > 1; width *= 2) {
    for (const [leaf, path] of paths.entries()) {
      // The last node of an odd level has no sibling: it goes up as it is.
      const sibling = level[Math.floor(leaf / width) ^ 1]
      if (sibling !== undefined) path.push(sibling)
    }
    level = hashLevel(level)
  }
  return { root: level[0] as string, paths }
}

function hashLevel(level: readonly string[]): string[] {
  const above: string[] = []
  for (let index = 0; index < level.length; index += 2) {
    const left = level[index] as string
    const right = level[index + 1]
    above.push(right === undefined ? left : hashNode(left, right))
  }
  return above
}
