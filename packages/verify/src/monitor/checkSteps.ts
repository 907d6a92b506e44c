import type { Verifier } from '@countersign/attestation'
import { unavailable } from '../createRpc.ts'
import type { AnchoredTree, Checkpoint } from '../findAnchors.ts'
import type { ReceiptFacts, ReceiptVerdict } from './checkReceipts.ts'
import type { MinedTransaction } from './createAccountReader.ts'
import type { Finding } from './findings.ts'
import type { WalletEvent } from './listEvents.ts'
import { mapConcurrently } from './mapConcurrently.ts'

/** Something that events name a receipt for: the use of a nonce, or a signature that is not on this chain. */
export type Step = {
  hash: string
  /** Undefined if it is not on the chain. */
  use: { nonce: number; blockNumber: number; isAuthorization: boolean } | undefined
}

export type MonitorMemory = {
  settled: Map<string, MinedTransaction>
  /** By the hash of the transaction or authorization. */
  accepted: Map<string, AcceptedReceipts>
  /** Caches evidence that receipts share. */
  verifier: Verifier
  /** By wallet. */
  anchors: Map<string, AnchorsMemory>
}

/** What earlier runs read from anchors, for one wallet. */
export type AnchorsMemory = {
  /** All checkpoints in blocks before this one are known. */
  nextBlock: number
  /** Checkpoints whose anchors were not read. */
  unread: Set<Checkpoint>
  /** The wallet's receipts. */
  events: WalletEvent[]
  /** Invalid anchors. */
  findings: Finding[]
  /** The newest tree of each log, by contract, id and origin. */
  trees: Map<string, AnchoredTree>
}

type AcceptedReceipts = {
  facts: readonly ReceiptFacts[]
  /** How many receipts events named at the last check. Undefined if another receipt must be checked again. */
  named: number | undefined
}

export type CheckedFacts = ReceiptFacts & {
  isAccepted: boolean
  /** The receipt is genuine, but the reader's anchors do not cover it. */
  isNotListed: boolean
}

export type CheckedSteps = {
  findings: Finding[]
  /** All readable receipts, with any conclusion. */
  receipts: CheckedFacts[]
  /** Receipts that could not be fetched, exceeded the limit per step, or were left for the next run. */
  unread: number
  /** How many were checked in this run. */
  checked: number
}

export type CheckStepsParameters = {
  steps: readonly Step[]
  memory: MonitorMemory
  maxReceipts: number
  /** How many receipts events name for this step. */
  countNamed: (step: Step) => number
  /** At least one, best first. */
  check: (step: Step) => Promise<readonly [ReceiptVerdict, ...ReceiptVerdict[]]>
}

/** Checks the receipts of each step. An accepted step is checked again only when events name another receipt for it. */
export async function checkSteps(
  { onProgress }: { onProgress?: (progress: { checked: number; of: number }) => void },
  { steps, memory, maxReceipts, countNamed, check }: CheckStepsParameters,
): Promise<CheckedSteps> {
  const fresh = steps.filter((step) => memory.accepted.get(step.hash)?.named !== countNamed(step))
  const chosen = fresh.slice(0, maxReceipts)
  const findings: Finding[] = steps.flatMap((step) => toNote(step) ?? [])
  const receipts: CheckedFacts[] = []
  let checked = 0
  let unread = fresh.length - chosen.length
  await mapConcurrently(chosen, async (step) => {
    const verdicts = await check(step)
    checked += 1
    onProgress?.({ checked, of: chosen.length })
    const [best] = verdicts
    const isProven = best.conclusion === 'accepted'
    // The publisher can name more receipts that fail or don't exist. Ignore those if there is a better one.
    for (const verdict of verdicts.filter((one) => one === best || isGenuine(one))) {
      const { facts, conclusion } = verdict
      findings.push(...toReceiptFindings(step, verdict))
      if (conclusion === 'accepted' || facts === undefined) continue
      receipts.push({ ...facts, isAccepted: false, isNotListed: conclusion === 'not-listed' })
    }
    unread += verdicts.filter(({ conclusion }) => conclusion === 'unavailable').length
    if (!isProven) return
    const isDone = verdicts.every(({ conclusion }) => conclusion === 'accepted' || conclusion === 'failed')
    const facts = verdicts.flatMap((one) => (one.conclusion === 'accepted' ? (one.facts ?? []) : []))
    memory.accepted.set(step.hash, { facts, named: isDone ? countNamed(step) : undefined })
  })
  const rest = fresh.slice(chosen.length)
  if (rest.length > 0) findings.push(toRest(rest))
  const accepted = steps.flatMap(({ hash }) => memory.accepted.get(hash)?.facts ?? [])
  for (const facts of accepted) receipts.push({ ...facts, isAccepted: true, isNotListed: false })
  return { findings, receipts, unread, checked }
}

function toNote({ hash: txHash, use }: Step): Finding | undefined {
  if (!use?.isAuthorization) return undefined
  return { kind: 'authorization', nonces: [use.nonce, use.nonce], txHash, blockNumber: use.blockNumber }
}

/** Whether the receipt can account for a log entry. A failed one can't. */
function isGenuine({ conclusion }: ReceiptVerdict): boolean {
  return !['unavailable', 'contradicted', 'failed'].includes(conclusion)
}

function toReceiptFindings(
  { hash: txHash, use }: Step,
  { conclusion, detail, nonce: signed }: ReceiptVerdict,
): Finding[] {
  const place = {
    txHash,
    ...(use === undefined ? {} : { nonces: [use.nonce, use.nonce] as const, blockNumber: use.blockNumber }),
    ...(detail === undefined ? {} : { detail }),
  }
  if (conclusion === 'unavailable') return [{ kind: 'receipt-unavailable', ...place }]
  if (conclusion === 'not-listed') return [{ kind: 'receipt-not-listed', ...place }]
  if (conclusion === 'failed' || conclusion === 'contradicted') {
    return [{ kind: 'receipt-failed', ...place, conclusion }]
  }
  if (conclusion !== 'accepted') return [{ kind: 'receipt-not-accepted', ...place, conclusion }]
  // The hash covers the nonce, so the node is wrong.
  if (use === undefined || signed === use.nonce) return []
  throw unavailable(`the node says that ${txHash} has nonce ${use.nonce}, but it was signed with ${signed}`)
}

function toRest(rest: readonly Step[]): Finding {
  const [first, last] = [rest[0]?.use, rest.at(-1)?.use]
  return {
    kind: 'not-judged',
    ...(first === undefined || last === undefined ? {} : { nonces: [first.nonce, last.nonce] as const }),
    detail: `${rest.length} receipts were left for the next run`,
  }
}
