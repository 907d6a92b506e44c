import { hash } from 'node:crypto'
import { assertQuotePolicy, type Collateral, type QuotePolicy, type Verifier } from '@countersign/attestation'
import {
  assertStatement,
  computeTdxReportData,
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  hashTree,
  ServiceError,
  type SignedBatch,
  type SignItem,
  type SignItemResult,
  type Statement,
  toHex,
  toStatementText,
} from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { SigningBatch } from '../store/types.ts'

export type EnclavePolicy = Omit<QuotePolicy, 'reportData'> & {
  /** Configurations to accept. Left out in mock mode only. */
  configHashes?: readonly string[]
}

export type CheckBatchDeps = {
  verifier: Verifier
  policy: EnclavePolicy
  now: number
}

/**
 * Step 4 of signing: the quote is genuine and of an enclave we trust, and it covers this batch. Only after that may a signature
 * of the batch be released. Throws `attestation_invalid`, or `collateral_stale` when it is the collateral that has lapsed.
 */
export async function checkBatch(
  { verifier, policy, now }: CheckBatchDeps,
  { batch, config, collateral }: { batch: SignedBatch; config: EnclaveConfig; collateral: Collateral },
): Promise<Pick<SigningBatch, 'mode' | 'tcbStatus' | 'measurement'>> {
  const { configHashes, ...quotePolicy } = policy
  try {
    const configHash = hashEnclaveConfig(config)
    if (configHashes !== undefined && !configHashes.includes(toHex(configHash))) {
      throw new CoordinatorError('attestation_invalid', 'the enclave has another configuration')
    }
    const reportData = computeTdxReportData({
      treeSize: batch.leaves.length,
      root: hashTree(batch.leaves.map(fromHex)),
      bootId: fromHex(batch.bootId),
      batchSequence: batch.sequence,
      previousBatchHash: fromHex(batch.previous),
      configHash,
    })
    const verified = await verifier.verifyQuote({
      quote: Buffer.from(batch.quote, 'hex'),
      collateral,
      ...(batch.eventLog === undefined ? {} : { eventLog: batch.eventLog }),
      at: new Date(now),
    })
    assertQuotePolicy(verified, { ...quotePolicy, reportData })
    const [rtmr0, rtmr1, rtmr2, rtmr3] = verified.body.rtmrs.map(toHex) as [string, string, string, string]
    return {
      mode: verified.root.mode,
      tcbStatus: verified.tcb.status,
      measurement: { mrTd: toHex(verified.body.mrTd), rtmr0, rtmr1, rtmr2, rtmr3 },
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

/** What an item must have been signed as. */
export type ExpectedItem = { item: SignItem; address: string; coordinatorKey: string }

/** The statement is about what was asked, and it is in the batch that the quote covers. Throws `attestation_invalid`. */
export function assertItemSigned(
  { item, address, coordinatorKey }: ExpectedItem,
  result: Exclude<SignItemResult, { error: string }>,
  batch: SignedBatch,
): Statement {
  const { statement, leafIndex } = result
  try {
    assertStatement(statement)
    if (hashLeafFast(statement) !== batch.leaves[leafIndex]) throw invalid('the statement is not in the batch')
  } catch (cause) {
    if (cause instanceof ServiceError && !(cause instanceof CoordinatorError)) throw invalid(cause.code, cause)
    throw cause
  }
  const isAsked =
    statement.digest === item.digest &&
    statement.keyId === item.keyId &&
    statement.address === address &&
    statement.chainId === item.txMetadata.chainId &&
    statement.entropyHash === item.entropyHash &&
    statement.coordinatorKey === coordinatorKey
  if (!isAsked) throw invalid('the statement is about something else')
  return statement
}

/** The protocol's `hashLeaf` of a statement that was asserted, in hex, with the faster SHA-256. */
function hashLeafFast(statement: Statement): string {
  return hash('sha256', `\0${toStatementText(statement)}`, 'hex')
}

function invalid(details: string, cause?: unknown) {
  return new CoordinatorError('attestation_invalid', 'the enclave’s answer does not hold', { details, cause })
}
