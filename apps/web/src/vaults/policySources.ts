import type { Policy, PolicyLog, TimeSource } from '@countersign/policy'
import { fromHex, isEd25519Key, isHex, isPlainObject, quicknet } from '@countersign/protocol'
import type { WebConfig } from '../config.ts'
import { askService } from '../wallet/serviceAnswers.ts'

/** With two witnesses a majority is both of them: if either disappears, the vault is locked. */
const MIN_WITNESSES = 3

/**
 * The witnesses that a new vault requires: those of the operator's manifest, if there are at least three. `createPolicy` rejects
 * invalid keys, and the enclave rejects a new vault if its settings do not list the vault's witnesses.
 */
export function readPolicyLog({ trust }: Pick<WebConfig, 'trust'>): PolicyLog | null {
  const log = isPlainObject(trust) && isPlainObject(trust.log) ? trust.log : {}
  if (!Array.isArray(log.witnesses) || log.witnesses.length < MIN_WITNESSES) return null
  return { witnesses: log.witnesses, quorum: Number(log.quorum) }
}

/**
 * What can tell the time to a schedule here: the sources that the operator's manifest names, and a public beacon as a spare, which the
 * service can turn to if they end. None where the manifest names no source: the beacon alone may be one that the service never uses.
 */
export function readTimeSources({ trust }: Pick<WebConfig, 'trust'>): TimeSource[] {
  const keys = isPlainObject(trust) && Array.isArray(trust.entropyKeys) ? trust.entropyKeys : []
  const satellites = keys
    .filter((key): key is string => isHex(key, 32) && isEd25519Key(fromHex(key)))
    .map((key): TimeSource => ({ kind: 'satellite', key }))
  return satellites.length === 0 ? [] : [...satellites, { kind: 'drand', ...quicknet }]
}

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
  if (present === undefined) return 'The service’s clock couldn’t be read. Try again in a moment.'
  const { startsAtMs } = schedule
  if (startsAtMs > present.from - TOLERANCE_MS && startsAtMs < present.to + TOLERANCE_MS) return undefined
  return 'This device’s clock differs from the service’s clock. Set the clock of this device, then review the rules again.'
}

async function readPresent(apiBaseUrl: string): Promise<{ from: number; to: number } | undefined> {
  const init = { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' } as const
  const answer = await askService(apiBaseUrl, '/health/attestation', init)
  const { fetchedAt, expiresAt } = isPlainObject(answer) ? answer : {}
  const [from, to] = [Date.parse(String(fetchedAt)), Date.parse(String(expiresAt))]
  return from < to ? { from, to } : undefined
}
