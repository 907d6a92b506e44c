import type { Policy, PolicyLog, TimeSource } from '@countersign/policy'
import { fromHex, isEd25519Key, isHex, isPlainObject, quicknet } from '@countersign/protocol'
import type { WebConfig } from '../config.ts'
import { fetchFromService } from '../wallet/serviceResponses.ts'

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
 * The time sources for schedules: the entropy sources of the operator's manifest, and a public beacon that the service can use if they
 * end. Empty if the manifest names none, because the service may never use the beacon.
 */
export function readTimeSources({ trust }: Pick<WebConfig, 'trust'>): TimeSource[] {
  const keys = isPlainObject(trust) && Array.isArray(trust.entropyKeys) ? trust.entropyKeys : []
  const satellites = keys
    .filter((key): key is string => isHex(key, 32) && isEd25519Key(fromHex(key)))
    .map((key): TimeSource => ({ kind: 'satellite', key }))
  return satellites.length === 0 ? [] : [...satellites, { kind: 'drand', ...quicknet }]
}

/** Allows for clock differences and for the time to read the rules. */
const TOLERANCE_MS = 15 * 60_000
const TIMEOUT_MS = 10_000

/**
 * Checks a schedule's start against the service's clock and returns an error. The start can never be changed: with a device clock that
 * runs ahead, payments are locked until then, and with one that lags, all accumulated payments are allowed at once. The service renews
 * its attestation every few minutes and it expires after an hour, so its two dates enclose the current time. A chain's last block
 * doesn't work, because a chain that creates blocks on demand may have an old one.
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
  const answer = await fetchFromService(apiBaseUrl, '/health/attestation', init)
  const { fetchedAt, expiresAt } = isPlainObject(answer) ? answer : {}
  const [from, to] = [Date.parse(String(fetchedAt)), Date.parse(String(expiresAt))]
  return from < to ? { from, to } : undefined
}
