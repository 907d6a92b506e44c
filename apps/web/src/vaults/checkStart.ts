import type { Policy } from '@countersign/policy'
import { fetchAttestation } from '../wallet/fetchAttestation.ts'

/** For clocks that differ a little, and for somebody who reads the rules slowly. */
const TOLERANCE_MS = 15 * 60_000
const TIMEOUT_MS = 10_000

/**
 * Why the schedule of a vault must not begin when its policy says; undefined where it may. It can never be changed: by a device whose
 * clock is ahead nothing leaves for as long, by one that is behind all that would have come due leaves at once. The service's evidence
 * about itself is renewed every few minutes and ends after an hour, so that its two dates enclose the present. A chain's last block
 * would not do: one that makes them on demand may have an old one.
 */
export async function checkStart(
  { schedule }: Pick<Policy, 'schedule'>,
  apiBaseUrl: string,
): Promise<string | undefined> {
  if (schedule === undefined) return undefined
  const present = await readPresent(apiBaseUrl).catch(() => undefined)
  if (present === undefined) return 'The clock of the service could not be read. Try again in a moment.'
  const { startsAtMs } = schedule
  if (startsAtMs > present.from - TOLERANCE_MS && startsAtMs < present.to + TOLERANCE_MS) return undefined
  return 'By the clock of the service, this schedule would not begin now. If the clock of this device is wrong, set it; then read the rules again.'
}

async function readPresent(apiBaseUrl: string): Promise<{ from: number; to: number } | undefined> {
  const init = { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' } as const
  const { fetchedAt, expiresAt } = (await fetchAttestation(apiBaseUrl, init)) ?? {}
  const [from, to] = [Date.parse(String(fetchedAt)), Date.parse(String(expiresAt))]
  return from < to ? { from, to } : undefined
}
