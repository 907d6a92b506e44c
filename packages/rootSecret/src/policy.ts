import {
  findOpenRegisters,
  type QuotePolicy,
  quotePolicyMembers,
  type TcbStatus,
  type TdMeasurement,
  type TdPlatform,
} from '@countersign/attestation/core'
import { hashRootSecretPolicy, isHex, isPlainObject, parseStrictJson, toHex } from '@countersign/protocol/core'
import { isX25519Key } from './sealing/x25519.ts'

/** Which enclaves may have the root secret, and the custodians of its backup. Its hash is part of the configuration. */
export type RootSecretPolicy = {
  measurements: readonly TdMeasurement[]
  statuses?: readonly TcbStatus[]
  minimumTcbEvaluationDataNumber?: number
  /** Required unless the hardware is simulated. */
  platforms?: readonly TdPlatform[]
  custodians: {
    /** The number of shares that reconstruct the secret. */
    threshold: number
    /** X25519 keys, 32 bytes each. A custodian is identified by its position. */
    keys: readonly string[]
  }
}

export type ParsedRootSecretPolicy = { policy: RootSecretPolicy; policyHash: string }

/** One share must never be enough, and too many custodians could not be brought together. */
const MIN_THRESHOLD = 2
const MAX_CUSTODIANS = 16
const MAX_BYTES = 262_144

const MEMBERS: Record<string, { isValid(value: unknown): boolean; isRequired?: boolean }> = {
  measurements: { isValid: quotePolicyMembers.measurements, isRequired: true },
  statuses: { isValid: quotePolicyMembers.statuses },
  minimumTcbEvaluationDataNumber: { isValid: quotePolicyMembers.minimumTcbEvaluationDataNumber },
  platforms: { isValid: quotePolicyMembers.platforms },
  custodians: { isValid: isCustodians, isRequired: true },
}

/**
 * Parses a policy from its JSON text, or lists all faults. Set `requirePlatforms` for every policy about a real secret: without a list of
 * machines, a quoting key leaked from any TDX machine is enough to get it.
 */
export function parseRootSecretPolicy(
  text: string,
  { requirePlatforms }: { requirePlatforms: boolean },
): ParsedRootSecretPolicy | { faults: string[] } {
  let value: unknown
  try {
    value = parseStrictJson(new TextEncoder().encode(text), { maxLength: MAX_BYTES })
  } catch {
    return { faults: ['expected JSON without duplicate members'] }
  }
  if (!isPlainObject(value)) return { faults: ['expected an object'] }
  // Ignoring a misspelled member would silently admit more enclaves.
  const faults = Object.keys(value)
    .filter((name) => !Object.hasOwn(MEMBERS, name))
    .map((name) => `unknown member ${name}`)
  for (const [name, { isValid, isRequired = false }] of Object.entries(MEMBERS)) {
    if ((isRequired || Object.hasOwn(value, name)) && !isValid(value[name])) {
      faults.push(`invalid ${name}: malformed or empty`)
    }
  }
  if (requirePlatforms && !Object.hasOwn(value, 'platforms')) {
    faults.push('missing platforms: list the machines that may hold the root secret')
  }
  if (faults.length === 0) faults.push(...findOpenMeasurements(value as RootSecretPolicy))
  if (faults.length > 0) return { faults }
  return { policy: value as RootSecretPolicy, policyHash: toHex(hashRootSecretPolicy(value)) }
}

/** The policy for a quote. */
export function toQuotePolicy({ custodians: _, ...policy }: RootSecretPolicy): QuotePolicy {
  return policy
}

/** An unchecked register could hold anyone's code, which would then get the secret. */
function findOpenMeasurements({ measurements }: RootSecretPolicy): string[] {
  return measurements.flatMap((measurement, index) => {
    const open = findOpenRegisters(measurement)
    return open.length === 0 ? [] : [`measurements[${index}] lacks ${open.join(', ')}`]
  })
}

function isCustodians(value: unknown): boolean {
  if (!isPlainObject(value) || Object.keys(value).toSorted().join() !== 'keys,threshold') return false
  const { threshold, keys } = value
  if (!Array.isArray(keys) || !keys.every((key) => isHex(key, 32) && isX25519Key(Buffer.from(key, 'hex')))) return false
  const count = keys.length
  if (new Set(keys).size !== count || count > MAX_CUSTODIANS) return false
  return Number.isInteger(threshold) && Number(threshold) >= MIN_THRESHOLD && Number(threshold) <= count
}
