import { CALLER_TOLERANCE_MS, SAMPLE_TOLERANCE_MS } from '@countersign/protocol'
import type { Clock } from '../../system.ts'
import {
  type Check,
  type Context,
  checkNames,
  type Finding,
  fault,
  ok,
  type SeenTime,
  skipped,
  type Times,
  warning,
} from './check.ts'

export function createTimes(): Times {
  const all = new Map<string, SeenTime>()
  return {
    note({ source, at, from, until, precisionMs }) {
      const aheadMs = at + precisionMs / 2 - (from + until) / 2
      const seen = { source, aheadMs, precisionMs: precisionMs + (until - from) }
      // Keeps the most precise measurement.
      const known = all.get(source)
      if (known === undefined || seen.precisionMs < known.precisionMs) all.set(source, seen)
    },
    seen: () => [...all.values()],
  }
}

/** A fetch that records the `Date` header of each host. */
export function createTimedFetch(
  fetch: typeof globalThis.fetch,
  { clock, times }: { clock: Clock; times: Times },
): typeof globalThis.fetch {
  return async (input, init) => {
    const from = clock.now()
    const response = await fetch(input, init)
    const at = Date.parse(response.headers.get('date') ?? '')
    const host = toHost(input)
    if (Number.isFinite(at) && host !== undefined) {
      times.note({ source: host, at, from, until: clock.now(), precisionMs: 1000 })
    }
    return response
  }
}

function toHost(input: string | URL | Request): string | undefined {
  return URL.parse(input instanceof Request ? input.url : String(input))?.host
}

/** Runs last and compares the times of all hosts that answered. */
export function createClockChecks({ times }: Context): Check[] {
  return [
    {
      name: 'clock',
      after: checkNames.filter((name) => name !== 'clock'),
      run: async () => evaluateTimes(times.seen()),
    },
  ]
}

/** Trusts the median of the other clocks, because one of them may be wrong. */
export function evaluateTimes(seen: readonly SeenTime[]): Finding | Finding[] {
  if (seen.length === 0) return skipped('no checked server reported its time')
  const sorted = seen.toSorted((left, right) => left.aheadMs - right.aheadMs)
  const middle = sorted[Math.floor(sorted.length / 2)] as SeenTime
  const fix = 'Synchronize this machine’s clock with NTP (chrony, systemd-timesyncd).'
  if (isOff(middle, SAMPLE_TOLERANCE_MS)) {
    const text = `this machine’s clock is ${toText(-middle.aheadMs)} the clock of ${middle.source}`
    return isOff(middle, CALLER_TOLERANCE_MS) ? fault(`${text}; enclaves reject its calls`, fix) : warning(text, fix)
  }
  const odd = seen.filter((each) => isOff(each, SAMPLE_TOLERANCE_MS))
  if (odd.length === 0) return ok(`agrees with ${seen.map(({ source }) => source).join(', ')}`)
  return odd.map(({ source, aheadMs }) =>
    warning(`the clock of ${source} is ${toText(aheadMs)} ours`, 'Synchronize it with NTP.'),
  )
}

function isOff({ aheadMs, precisionMs }: SeenTime, toleranceMs: number): boolean {
  return Math.abs(aheadMs) - precisionMs > toleranceMs
}

function toText(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs < 0 ? 'behind' : 'ahead of'}`
}
