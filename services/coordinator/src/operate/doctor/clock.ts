import { CALLER_TOLERANCE_MS, SAMPLE_TOLERANCE_MS } from '@countersign/protocol'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'
import { checkNames } from './names.ts'
import type { SeenTime } from './times.ts'

/** Last of all: what time everybody who answered has. */
export function createClockChecks({ times }: Context): Check[] {
  return [
    { name: 'clock', after: checkNames.filter((name) => name !== 'clock'), run: async () => judgeTimes(times.seen()) },
  ]
}

/** The middle of the others is believed: one of them may be wrong, and then it is that one’s clock. */
export function judgeTimes(seen: readonly SeenTime[]): Finding | Finding[] {
  if (seen.length === 0) return skipped('nothing that was looked at has a clock')
  const sorted = seen.toSorted((left, right) => left.aheadMs - right.aheadMs)
  const middle = sorted[Math.floor(sorted.length / 2)] as SeenTime
  const mend = 'Set the clock of this machine by NTP (chrony, systemd-timesyncd).'
  if (isOff(middle, SAMPLE_TOLERANCE_MS)) {
    const text = `this machine’s clock is ${toText(-middle.aheadMs)} that of ${middle.source}`
    return isOff(middle, CALLER_TOLERANCE_MS) ? fault(`${text}: enclaves refuse its calls`, mend) : warning(text, mend)
  }
  const odd = seen.filter((each) => isOff(each, SAMPLE_TOLERANCE_MS))
  if (odd.length === 0) return ok(`agrees with ${seen.map(({ source }) => source).join(', ')}`)
  return odd.map(({ source, aheadMs }) =>
    warning(`the clock of ${source} is ${toText(aheadMs)} ours`, 'Set it by NTP.'),
  )
}

function isOff({ aheadMs, precisionMs }: SeenTime, toleranceMs: number): boolean {
  return Math.abs(aheadMs) - precisionMs > toleranceMs
}

function toText(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs < 0 ? 'behind' : 'ahead of'}`
}
