import {
  assertQuotePolicy,
  codeEvents,
  findOpenEvents,
  findOpenRegisters,
  isMeasuredAs,
  type QuotePolicy,
  type VerifiedQuote,
} from '@countersign/attestation'
import { toHex } from '@countersign/protocol'
import type { Anchors } from './anchors.ts'
import { StepSkip } from './transcript.ts'

/** What known code is worth where dstack gives the root secret: the secret is an application's, not that of a measurement. */
export const DSTACK_SECRET =
  'The root secret comes from dstack: the owner of the app’s contract can admit other code to the same secret.'

/**
 * Whether the enclave ran code that the reader knows, as a sentence. A register that can hold code and that the reader did not
 * name could hold anybody's, so that it makes the step a skip.
 */
export function checkMeasurement(
  quote: VerifiedQuote,
  { measurements, events = {} }: Pick<Anchors, 'measurements' | 'events'>,
  { rootSecret }: { rootSecret: string },
): string {
  const mrTd = `MRTD ${toHex(quote.body.mrTd)}`
  if (!measurements?.length) throw new StepSkip(`No measurements to compare ${mrTd} with.`)
  assertQuotePolicy(quote, { ...acceptAnyState(quote), measurements })
  const isDstack = rootSecret === 'dstack'
  const matching = measurements.filter((measurement) => isMeasuredAs(quote.body, measurement))
  const isWhole = matching.some((measurement) => findOpenRegisters(measurement).length === 0)
  // A named RTMR3 says all that its events could: those of another release, which runs on dstack, are not asked for here.
  if (isDstack || !isWhole) assertQuotePolicy(quote, { ...acceptAnyState(quote), events })
  const [open = []] = matching
    .map((measurement) => findOpenRegisters(measurement, events))
    .toSorted((one, other) => one.length - other.length)
  if (open.length > 0) {
    throw new StepSkip(`${mrTd} is among the anchors, but they do not name ${describeRegisters(open)}.`)
  }
  const openEvents = findOpenEvents(events)
  // RTMR3 alone does not show whose application it was and who gave it its key. Simulated silicon records no events.
  if (isDstack && openEvents.length > 0 && quote.root.mode === 'hardware') {
    const names = joinWords(openEvents)
    throw new StepSkip(`All registers are among the anchors, but they do not name dstack’s events ${names}.`)
  }
  const known = `${mrTd} and all other code registers are among the anchors.`
  return isDstack ? `${known} ${DSTACK_SECRET}` : known
}

function describeRegisters(registers: readonly string[]): string {
  const names = registers.map((name) => name.toUpperCase())
  const alternative = registers.includes('rtmr3') ? ` (for RTMR3 the events ${joinWords(codeEvents)} will do)` : ''
  return `${joinWords(names)}${alternative}`
}

function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** For a step that looks at code alone: the state has its own step. */
function acceptAnyState({ tcb }: VerifiedQuote): QuotePolicy {
  return { statuses: [tcb.status], allowSeptVe: true, allowMigratable: true, allowPerfmon: true, allowTpa: true }
}
