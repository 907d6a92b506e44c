import type { Verifier } from '@countersign/attestation'
import { unavailable } from '../createRpc.ts'
import type { MinedTransaction } from './createAccountReader.ts'
import type { Judgement } from './judgeReceipt.ts'
import type { ReceiptFacts } from './log/receiptFacts.ts'
import { mapSome } from './mapSome.ts'
import type { Finding } from './report.ts'

/** What an event names a receipt for: the use of a nonce, or something that is not on this chain. */
export type Step = {
  hash: string
  /** Undefined for what is not on the chain. */
  use: { nonce: number; blockNumber: number; isAuthorization: boolean } | undefined
}

export type MonitorMemory = {
  settled: Map<string, MinedTransaction>
  accepted: Map<string, ReceiptFacts>
  /** What receipts share of their evidence is verified once. */
  verifier: Verifier
}

export type JudgedFacts = ReceiptFacts & { isAccepted: boolean }

export type JudgedSteps = {
  findings: Finding[]
  /** All receipts that could be read, whatever became of them. */
  receipts: JudgedFacts[]
  /** Receipts that could not be fetched, were one of too many, or were left for the next look. */
  unread: number
  /** Receipts that were judged now. */
  judged: number
}

export type JudgeStepsParameters = {
  steps: readonly Step[]
  memory: MonitorMemory
  maxReceipts: number
  judge: (step: Step) => Promise<Judgement>
}

/** Judges the receipt of each step, but not again those that were accepted before. */
export async function judgeSteps(
  { onProgress }: { onProgress?: (progress: { judged: number; of: number }) => void },
  { steps, memory, maxReceipts, judge }: JudgeStepsParameters,
): Promise<JudgedSteps> {
  const fresh = steps.filter(({ hash }) => !memory.accepted.has(hash))
  const chosen = fresh.slice(0, maxReceipts)
  const findings: Finding[] = steps.flatMap((step) => toNote(step) ?? [])
  const receipts: JudgedFacts[] = []
  let judged = 0
  let unread = fresh.length - chosen.length
  await mapSome(chosen, async (step) => {
    const judgement = await judge(step)
    judged += 1
    onProgress?.({ judged, of: chosen.length })
    const finding = toReceiptFinding(step, judgement)
    const { facts, conclusion } = judgement
    if (conclusion === 'unavailable') unread += 1
    if (finding !== undefined) {
      findings.push(finding)
      if (facts !== undefined) receipts.push({ ...facts, isAccepted: false })
    } else if (facts !== undefined) memory.accepted.set(step.hash, facts)
  })
  const rest = fresh.slice(chosen.length)
  if (rest.length > 0) findings.push(toRest(rest))
  const accepted = steps.flatMap(({ hash }) => memory.accepted.get(hash) ?? [])
  for (const facts of accepted) receipts.push({ ...facts, isAccepted: true })
  return { findings, receipts, unread, judged }
}

function toNote({ hash: txHash, use }: Step): Finding | undefined {
  if (!use?.isAuthorization) return undefined
  return { kind: 'authorization', nonces: [use.nonce, use.nonce], txHash, blockNumber: use.blockNumber }
}

function toReceiptFinding(
  { hash: txHash, use }: Step,
  { conclusion, detail, nonce: signed }: Judgement,
): Finding | undefined {
  const place = {
    txHash,
    ...(use === undefined ? {} : { nonces: [use.nonce, use.nonce] as const, blockNumber: use.blockNumber }),
    ...(detail === undefined ? {} : { detail }),
  }
  if (conclusion === 'unavailable') return { kind: 'receipt-unavailable', ...place }
  if (conclusion === 'failed' || conclusion === 'contradicted') return { kind: 'receipt-failed', ...place, conclusion }
  if (conclusion !== 'accepted') return { kind: 'receipt-not-accepted', ...place, conclusion }
  // The hash covers the nonce, so that it is the node which is wrong about it.
  if (use === undefined || signed === use.nonce) return undefined
  throw unavailable(`the node says that ${txHash} has nonce ${use.nonce}, and it was signed with ${signed}`)
}

function toRest(rest: readonly Step[]): Finding {
  const [first, last] = [rest[0]?.use, rest.at(-1)?.use]
  return {
    kind: 'not-judged',
    ...(first === undefined || last === undefined ? {} : { nonces: [first.nonce, last.nonce] as const }),
    detail: `${rest.length} receipts are left to judge`,
  }
}
