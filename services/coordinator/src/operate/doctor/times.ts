import type { Clock } from '../../system.ts'

/** What time somebody else has. */
export type SeenTime = { source: string; aheadMs: number; precisionMs: number }

export type Times = {
  /** `at` is a time of theirs, from some moment between the two of ours. */
  note(parameters: { source: string; at: number; from: number; until: number; precisionMs: number }): void
  seen(): readonly SeenTime[]
}

export function createTimes(): Times {
  const all = new Map<string, SeenTime>()
  return {
    note({ source, at, from, until, precisionMs }) {
      const aheadMs = at + precisionMs / 2 - (from + until) / 2
      const seen = { source, aheadMs, precisionMs: precisionMs + (until - from) }
      // The most precise counts.
      const known = all.get(source)
      if (known === undefined || seen.precisionMs < known.precisionMs) all.set(source, seen)
    },
    seen: () => [...all.values()],
  }
}

/** A fetch that notes the `Date` of each answer, by the host that gave it. */
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
