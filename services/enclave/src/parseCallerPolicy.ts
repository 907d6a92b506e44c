import { hash } from 'node:crypto'
import { type ReportPolicy, readSnpMeasurement, snpProducts, snpTcbParts } from '@countersign/attestation/core'
import { isHex, isPlainObject, parseStrictJson, toCanonicalJson } from '@countersign/protocol/core'
import type { CallerPolicy } from './callers.ts'

type ParsedCallerPolicy = { policy: CallerPolicy; policyHash: string }

const MEMBERS = ['measurements', 'configHashes', 'minimumTcb', 'chips', 'requireRevocations']
const MAX_BYTES = 262_144

/**
 * Reads a policy for coordinators, `{ measurements, configHashes, minimumTcb?, chips?, requireRevocations? }`, from JSON, or lists all its
 * faults. An empty list is a fault: it would admit no one, or anyone. In production each measurement needs its HOST_DATA, and each product a
 * minimum TCB.
 */
export function parseCallerPolicy(
  text: string,
  { isProduction }: { isProduction: boolean },
): ParsedCallerPolicy | { faults: string[] } {
  let value: unknown
  try {
    value = parseStrictJson(new TextEncoder().encode(text), { maxLength: MAX_BYTES })
  } catch {
    return { faults: ['expected JSON'] }
  }
  const policy = isPlainObject(value) ? value : {}
  const faults = Object.keys(policy)
    .filter((name) => !MEMBERS.includes(name))
    .map((name) => `unknown member ${name}`)
  const { measurements, configHashes, minimumTcb, chips, requireRevocations = false } = policy
  const code = Array.isArray(measurements) ? measurements.map(readSnpMeasurement) : []
  if (code.length === 0 || code.includes(undefined)) {
    faults.push('invalid measurements: expected a list of 48-byte hex, optionally with : and 32-byte HOST_DATA')
  } else if (isProduction && code.some((item) => item?.hostData === undefined)) {
    faults.push('invalid measurements: production requires MEASUREMENT:HOST_DATA')
  }
  if (!isHexList(configHashes, 32)) faults.push('invalid configHashes: expected a list of 32-byte hex')
  if (minimumTcb !== undefined && !isMinimumTcb(minimumTcb)) {
    faults.push('invalid minimumTcb: expected { product: { fmc | bl | tee | snp | ucode: 0 to 255 } }')
  } else if (isProduction && !isAboveZero(minimumTcb)) {
    faults.push('invalid minimumTcb: production requires a value above zero for each product')
  }
  if (chips !== undefined && !isHexList(chips, 64)) faults.push('invalid chips: expected a list of 64-byte hex')
  if (typeof requireRevocations !== 'boolean') faults.push('invalid requireRevocations: expected true or false')
  if (faults.length > 0) return { faults }
  return {
    policy: {
      kind: 'attested',
      report: {
        measurements: measurements as string[],
        ...(minimumTcb === undefined ? {} : { minimumTcb: minimumTcb as MinimumTcb }),
        ...(chips === undefined ? {} : { chips: chips as string[] }),
      },
      configHashes: configHashes as string[],
      requireRevocations: requireRevocations === true,
    },
    policyHash: hash('sha256', toCanonicalJson(policy), 'hex'),
  }
}

function isHexList(list: unknown, bytes: number): boolean {
  return Array.isArray(list) && list.length > 0 && list.every((item) => isHex(item, bytes))
}

type MinimumTcb = NonNullable<ReportPolicy['minimumTcb']>

/** A misspelt part would silently mean a minimum of zero. */
function isMinimumTcb(value: unknown): value is MinimumTcb {
  return isRecordOf(value, snpProducts, (parts) =>
    isRecordOf(parts, snpTcbParts, (level) => Number.isInteger(level) && Number(level) >= 0 && Number(level) <= 255),
  )
}

/** The oldest firmware satisfies a minimum of zero. */
function isAboveZero(minimumTcb: MinimumTcb = {}): boolean {
  const products = Object.values(minimumTcb)
  return products.length > 0 && products.every((parts) => Object.values(parts).some((level) => level > 0))
}

function isRecordOf(value: unknown, names: readonly string[], isValid: (member: unknown) => boolean): boolean {
  if (!isPlainObject(value)) return false
  const entries = Object.entries(value)
  return entries.length > 0 && entries.every(([name, member]) => names.includes(name) && isValid(member))
}
