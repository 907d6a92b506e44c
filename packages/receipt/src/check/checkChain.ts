import {
  attestationPublishedTopic,
  MAX_SAMPLE_AGE_MS,
  parseAttestationPublished,
  readAttestationPublished,
  SAMPLE_TOLERANCE_MS,
  ServiceError,
} from '@countersign/protocol'
import type { ReceiptView } from '../receiptView.ts'
import type { Anchors } from './anchors.ts'
import type { ChainReader } from './chainReader.ts'
import { checkAnchor, type GivenAnchor, type LoggedEntry } from './checkAnchor.ts'
import { toTime } from './checkWitness.ts'
import { failIf, needs, StepFailure, StepSkip, type Transcript } from './steps.ts'

export type TimePolicy = {
  /** A later event doesn't confirm the signing time. */
  maximumEventDelayS?: number
}

/** 72 hours: a service that is down over a weekend still publishes in time. */
export const DEFAULT_MAXIMUM_EVENT_DELAY_S = 259_200

/**
 * Whether an event confirms the signing time. The receipt's time is only the enclave's claim, and all evidence is checked at that time. So
 * anyone with keys that leaked later could backdate a receipt.
 * - `bounded`: the chain had the CID soon after the stated time
 * - `late`: the chain has the CID, but only since long after the stated time
 * - `unbounded`: no event was found
 */
export type TimeBound = 'bounded' | 'late' | 'unbounded'

/** event → transaction → time → time-bound: the public record. */
export async function checkChain(
  { run }: Transcript,
  receipt: ReceiptView,
  {
    chain,
    anchors,
    policy: { maximumEventDelayS = DEFAULT_MAXIMUM_EVENT_DELAY_S },
    cid,
    isEventDue,
    anchor,
    entry,
  }: {
    chain: ChainReader | undefined
    anchors: Anchors
    policy: TimePolicy
    cid: string
    isEventDue: boolean
    anchor: GivenAnchor | undefined
    entry: LoggedEntry | undefined
  },
): Promise<{ isEventMissing: boolean; timeBound: TimeBound }> {
  const { kind = 'transaction', transaction, entropy, coordinator } = receipt
  let isEventMissing = false
  let timeBound: TimeBound = 'unbounded'

  const what = anchor === undefined ? 'event' : 'checkpoint'
  const event = await run('event', async () => {
    const reader = needs(chain, 'no chain was given')
    if (anchor !== undefined) {
      const found = await checkAnchor(
        { getLogs: (query) => ask(() => reader.getLogs(query)) },
        { given: anchor, anchors, entry },
      )
      if (found !== undefined) return found
      failIf(isEventDue, 'The contract has no checkpoint of this size.')
      isEventMissing = true
      throw new StepSkip('The contract has no checkpoint of this size, and none is expected yet.')
    }
    const contract = needs(anchors.contract, 'no contract address was given').toLowerCase()
    const topics = [
      attestationPublishedTopic,
      `0x${transaction.from.slice(2).padStart(64, '0')}`,
      transaction.txHash,
    ] as const
    const logs = await ask(() => reader.getLogs({ address: contract, topics }))
    const own = logs.filter(({ address }) => address.toLowerCase() === contract)
    if (own.length === 0 && !isEventDue) {
      isEventMissing = true
      throw new StepSkip('The contract has no event for this wallet and transaction, and none is expected yet.')
    }
    const events = own
      .map((log) => ({ ...log, ...readAttestationPublished(log) }))
      .filter(({ wallet, txHash }) => wallet === transaction.from && txHash === transaction.txHash)
    if (events.length === 0) own.forEach(parseAttestationPublished) // throws the fault of the first
    failIf(events.length === 0, 'The contract has no event for this wallet and transaction.')
    // In any order, depending on the node. The earliest one counts, because the receipt existed from then on.
    const [match] = events
      .filter(({ ipfsCid }) => ipfsCid === cid)
      .toSorted((a, b) => a.blockTime.getTime() - b.blockTime.getTime())
    if (match === undefined) throw new StepFailure(`The event points to ${events[0]?.ipfsCid}, not to this receipt.`)
    return [`Block ${match.blockNumber} of ${match.blockTime.toISOString()} points to ${cid}.`, match]
  })

  await run('transaction', async () => {
    if (kind !== 'transaction') throw new StepSkip('Only transactions are recorded on a chain themselves.')
    const reader = needs(chain, 'no chain was given')
    const { chainId, txHash } = transaction
    const state = await ask(() => reader.getTransactionState({ chainId, txHash }))
    if (state === 'unknown')
      throw new StepSkip('This node does not have the transaction; a signature need not be broadcast.')
    if (state === 'pending') throw new StepSkip('The transaction is pending.')
    return [`Transaction ${txHash} is mined.`, undefined]
  })

  await run('time', () => {
    const sampled = toTime(entropy.timestamp, 'The time of the sample')
    const signed = toTime(transaction.signedAt, 'The time of signing')
    const attested = toTime(coordinator.selfAttestation.fetchedAt, 'The time of the coordinator’s report')
    failIf(sampled > signed + SAMPLE_TOLERANCE_MS, 'The entropy sample is newer than the signature.')
    failIf(signed - sampled > MAX_SAMPLE_AGE_MS, 'The entropy sample was too old when it was used.')
    failIf(attested > signed + SAMPLE_TOLERANCE_MS, 'The coordinator attested itself only after the signature.')
    const order = `The sample was ${((signed - sampled) / 1000).toFixed(1)} s old at signing`
    if (event === undefined) return [`${order}.`, undefined]
    const published = event.blockTime.getTime()
    failIf(published < signed - SAMPLE_TOLERANCE_MS, `The ${what} is older than the signature.`)
    return [`${order}, and the ${what} followed ${((published - signed) / 1000).toFixed(1)} s later.`, undefined]
  })

  await run('time-bound', () => {
    if (event === undefined) throw new StepSkip(`No ${what} was found, so the signature may be newer than stated.`)
    const published = event.blockTime.toISOString()
    const limit = toDuration(maximumEventDelayS)
    const delayMs = event.blockTime.getTime() - Date.parse(transaction.signedAt)
    // Negated, so that NaN fails too.
    if (!(delayMs <= maximumEventDelayS * 1000)) {
      timeBound = 'late'
      throw new StepSkip(
        `The ${what} is of ${published}, more than ${limit} after the stated time of signing. The signature may be as new as that.`,
      )
    }
    timeBound = 'bounded'
    return [`The ${what} is of ${published}, at most ${limit} after the stated time of signing.`, undefined]
  })

  return { isEventMissing, timeBound }
}

function toDuration(seconds: number): string {
  return seconds % 3600 === 0 ? `${seconds / 3600} h` : `${seconds} s`
}

/** An unavailable node proves nothing. */
async function ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
  try {
    return await question()
  } catch (error) {
    throw new StepSkip(`The chain is unavailable: ${describe(error)}.`)
  }
}

/** Uses the details of our errors, which name the host and the reason, instead of the general message. */
function describe(error: unknown): string {
  if (error instanceof ServiceError) return error.details ?? error.message
  return error instanceof Error ? error.message : String(error)
}
