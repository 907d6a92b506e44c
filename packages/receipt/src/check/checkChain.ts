import {
  attestationPublishedTopic,
  type EventLog,
  type Hex,
  MAX_SAMPLE_AGE_MS,
  parseAttestationPublished,
  readAttestationPublished,
  SAMPLE_TOLERANCE_MS,
  ServiceError,
} from '@countersign/protocol'
import type { ReceiptView } from '../receiptView.ts'
import type { Anchors } from './anchors.ts'
import { toTime } from './checkWitness.ts'
import { failIf, needs, StepFailure, StepSkip, type Transcript } from './steps.ts'

/** A log as a node has it, with the time of its block. */
export type ChainLog = EventLog & { address: string; blockNumber: number; blockTime: Date }

/** How a chain is asked. An adapter fetches; what comes back is judged here. It throws when it cannot ask. */
export type ChainReader = {
  getLogs(query: { address: string; topics: readonly [string, string, string] }): Promise<readonly ChainLog[]>
  /** `unknown` when the node does not have it, or is of another chain. */
  getTransactionState(query: { chainId: number; txHash: Hex }): Promise<'mined' | 'pending' | 'unknown'>
}

export type TimePolicy = {
  /** An event that came longer than this after the signing does not bound its time from above. */
  maximumEventDelayS?: number
}

/** 72 hours: a service that is down over a weekend still publishes in time. */
export const DEFAULT_MAXIMUM_EVENT_DELAY_S = 259_200

/**
 * What bounds the time of signing from above. The time in a receipt is the enclave's word, and all evidence is judged at it, so
 * whoever holds keys that leaked since could date a receipt back to when they were good:
 * - `bounded`: the chain had the CID soon after the stated time
 * - `late`: the chain has the CID, but only since long after the stated time
 * - `unbounded`: no event was seen
 */
export type TimeBound = 'bounded' | 'late' | 'unbounded'

/** event → transaction → time → time-bound: where and when it all stands in public. */
export async function checkChain(
  { run }: Transcript,
  receipt: ReceiptView,
  {
    chain,
    anchors,
    policy: { maximumEventDelayS = DEFAULT_MAXIMUM_EVENT_DELAY_S },
    cid,
    isEventDue,
  }: { chain: ChainReader | undefined; anchors: Anchors; policy: TimePolicy; cid: string; isEventDue: boolean },
): Promise<{ isEventMissing: boolean; timeBound: TimeBound }> {
  const { kind = 'transaction', transaction, entropy, coordinator } = receipt
  let isEventMissing = false
  let timeBound: TimeBound = 'unbounded'

  const event = await run('event', async () => {
    const reader = needs(chain, 'no chain was given to ask')
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
      throw new StepSkip('The contract has no event for this wallet and transaction, and none is due.')
    }
    const events = own
      .map((log) => ({ ...log, ...readAttestationPublished(log) }))
      .filter(({ wallet, txHash }) => wallet === transaction.from && txHash === transaction.txHash)
    if (events.length === 0) own.forEach(parseAttestationPublished) // says what is wrong with the first
    failIf(events.length === 0, 'The contract has no event for this wallet and transaction.')
    // A node may list them in any order. The earliest is the one that bounds the time: from then on the receipt existed.
    const [match] = events
      .filter(({ ipfsCid }) => ipfsCid === cid)
      .toSorted((a, b) => a.blockTime.getTime() - b.blockTime.getTime())
    if (match === undefined) throw new StepFailure(`The event points to ${events[0]?.ipfsCid}, not to this receipt.`)
    return [`Block ${match.blockNumber} of ${match.blockTime.toISOString()} points to ${cid}.`, match]
  })

  await run('transaction', async () => {
    if (kind !== 'transaction') throw new StepSkip('Nothing but a transaction has a place of its own on a chain.')
    const reader = needs(chain, 'no chain was given to ask')
    const { chainId, txHash } = transaction
    const state = await ask(() => reader.getTransactionState({ chainId, txHash }))
    if (state === 'unknown')
      throw new StepSkip('This node does not have the transaction; a signature need not be broadcast.')
    if (state === 'pending') throw new StepSkip('The transaction waits to be mined.')
    return [`Transaction ${txHash} is mined.`, undefined]
  })

  await run('time', () => {
    const sampled = toTime(entropy.timestamp, 'The time of the sample')
    const signed = toTime(transaction.signedAt, 'The time of signing')
    const attested = toTime(coordinator.selfAttestation.fetchedAt, 'The time of the coordinator’s report')
    failIf(sampled > signed + SAMPLE_TOLERANCE_MS, 'The entropy sample is younger than the signature.')
    failIf(signed - sampled > MAX_SAMPLE_AGE_MS, 'The entropy sample was too old when it was used.')
    failIf(attested > signed + SAMPLE_TOLERANCE_MS, 'The coordinator attested itself only after the signature.')
    const order = `The sample was ${((signed - sampled) / 1000).toFixed(1)} s old at signing`
    if (event === undefined) return [`${order}.`, undefined]
    const published = event.blockTime.getTime()
    failIf(published < signed - SAMPLE_TOLERANCE_MS, 'The event is older than the signature.')
    return [`${order}, and the event followed ${((published - signed) / 1000).toFixed(1)} s later.`, undefined]
  })

  await run('time-bound', () => {
    if (event === undefined) throw new StepSkip('No event was seen, so the signature may be younger than it says.')
    const published = event.blockTime.toISOString()
    const limit = toDuration(maximumEventDelayS)
    const delayMs = event.blockTime.getTime() - Date.parse(transaction.signedAt)
    // So written, a limit or a time that is no number bounds nothing.
    if (!(delayMs <= maximumEventDelayS * 1000)) {
      timeBound = 'late'
      throw new StepSkip(
        `The event is of ${published}, more than ${limit} after the stated time of signing: the signature may be as young as the event.`,
      )
    }
    timeBound = 'bounded'
    return [`The event is of ${published}, at most ${limit} after the stated time of signing.`, undefined]
  })

  return { isEventMissing, timeBound }
}

function toDuration(seconds: number): string {
  return seconds % 3600 === 0 ? `${seconds / 3600} h` : `${seconds} s`
}

/** A node that cannot be asked proves nothing, for or against. */
async function ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
  try {
    return await question()
  } catch (error) {
    throw new StepSkip(`The chain could not be asked: ${describe(error)}.`)
  }
}

/** The details of an error of ours name the host and the reason; its message only says that the chain could not be asked. */
function describe(error: unknown): string {
  if (error instanceof ServiceError) return error.details ?? error.message
  return error instanceof Error ? error.message : String(error)
}
