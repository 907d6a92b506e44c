import type { Verifier } from '@countersign/attestation'
import { unavailable } from '../createRpc.ts'
import type { MinedTransaction } from './createAccountReader.ts'
import type { Finding } from './findings.ts'
import type { Judgement, ReceiptFacts } from './judgeReceipt.ts'
import { mapSome } from './mapSome.ts'

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
}

type AcceptedReceipts = {
  facts: readonly ReceiptFacts[]
  /** How many receipts events named at the last check. Undefined if another receipt must be checked again. */
  named: number | undefined
}

export type JudgedFacts = ReceiptFacts & {
  isAccepted: boolean
  /** The receipt is genuine, but the reader's anchors do not cover it. */
  isNotListed: boolean
}

export type JudgedSteps = {
  findings: Finding[]
  /** All readable receipts, with any conclusion. */
  receipts: JudgedFacts[]
  /** Receipts that could not be fetched, exceeded the limit per step, or were left for the next run. */
  unread: number
  /** How many were checked in this run. */
  judged: number
}

export type JudgeStepsParameters = {
  steps: readonly Step[]
  memory: MonitorMemory
  maxReceipts: number
  /** How many receipts events name for this step. */
  countNamed: (step: Step) => number
  /** At least one, best first. */
  judge: (step: Step) => Promise<readonly [Judgement, ...Judgement[]]>
}

/** Checks the receipts of each step. An accepted step is checked again only when events name another receipt for it. */
export async function judgeSteps(
  { onProgress }: { onProgress?: (progress: { judged: number; of: number }) => void },
  { steps, memory, maxReceipts, countNamed, judge }: JudgeStepsParameters,
): Promise<JudgedSteps> {
  const fresh = steps.filter((step) => memory.accepted.get(step.hash)?.named !== countNamed(step))
  const chosen = fresh.slice(0, maxReceipts)
  const findings: Finding[] = steps.flatMap((step) => toNote(step) ?? [])
  const receipts: JudgedFacts[] = []
  let judged = 0
  let unread = fresh.length - chosen.length
  await mapSome(chosen, async (step) => {
    const judgements = await judge(step)
    judged += 1
    onProgress?.({ judged, of: chosen.length })
    const [best] = judgements
    const isProven = best.conclusion === 'accepted'
    // The publisher can name more receipts that fail or don't exist. Ignore those if there is a better one.
    for (const judgement of judgements.filter((one) => one === best || isGenuine(one))) {
      const { facts, conclusion } = judgement
      findings.push(...toReceiptFindings(step, judgement))
      if (conclusion === 'accepted' || facts === undefined) continue
      receipts.push({ ...facts, isAccepted: false, isNotListed: conclusion === 'not-listed' })
    }
    unread += judgements.filter(({ conclusion }) => conclusion === 'unavailable').length
    if (!isProven) return
    const isDone = judgements.every(({ conclusion }) => conclusion === 'accepted' || conclusion === 'failed')
    const facts = judgements.flatMap((one) => (one.conclusion === 'accepted' ? (one.facts ?? []) : []))
    memory.accepted.set(step.hash, { facts, named: isDone ? countNamed(step) : undefined })
  })
  const rest = fresh.slice(chosen.length)
  if (rest.length > 0) findings.push(toRest(rest))
  const accepted = steps.flatMap(({ hash }) => memory.accepted.get(hash)?.facts ?? [])
  for (const facts of accepted) receipts.push({ ...facts, isAccepted: true, isNotListed: false })
  return { findings, receipts, unread, judged }
}

function toNote({ hash: txHash, use }: Step): Finding | undefined {
  if (!use?.isAuthorization) return undefined
  return { kind: 'authorization', nonces: [use.nonce, use.nonce], txHash, blockNumber: use.blockNumber }
}

/** Whether the receipt can account for a log entry. A failed one can't. */
function isGenuine({ conclusion }: Judgement): boolean {
  return !['unavailable', 'contradicted', 'failed'].includes(conclusion)
}

function toReceiptFindings({ hash: txHash, use }: Step, { conclusion, detail, nonce: signed }: Judgement): Finding[] {
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
