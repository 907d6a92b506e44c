import { hash } from 'node:crypto'
import { readSnpMeasurement, type SnpProduct, type SnpTcb } from '@countersign/attestation'
import { isHex, isPlainObject, parseStrictJson, toCanonicalJson } from '@countersign/protocol'
import type { CallerPolicy } from './callers.ts'

type ParsedCallerPolicy = { policy: CallerPolicy; policyHash: string }

const MEMBERS = ['measurements', 'configHashes', 'vmpls', 'signingKeys', 'minimumTcb', 'chips', 'requireRevocations']
const MAX_BYTES = 262_144

/**
 * Reads a policy for coordinators, `{ measurements, configHashes, vmpls?, signingKeys?, minimumTcb?, chips?, requireRevocations? }`,
 * from its JSON text, or lists everything that is wrong with it. An empty list is a fault: it would let nobody in, or anybody. In
 * production each measurement has its HOST_DATA, and there is a minimum TCB.
 */
export function parseCallerPolicy(
  text: string,
  { isProduction }: { isProduction: boolean },
): ParsedCallerPolicy | { faults: string[] } {
  let value: unknown
  try {
    value = parseStrictJson(new TextEncoder().encode(text), { maxLength: MAX_BYTES })
  } catch {
    return { faults: ['cannot be read as JSON'] }
  }
  const policy = isPlainObject(value) ? value : {}
  const faults = Object.keys(policy)
    .filter((name) => !MEMBERS.includes(name))
    .map((name) => `${name} is unknown`)
  const { measurements, configHashes, vmpls, signingKeys, minimumTcb, chips, requireRevocations = false } = policy
  const code = Array.isArray(measurements) ? measurements.map(readSnpMeasurement) : []
  if (code.length === 0 || code.includes(undefined)) {
    faults.push('measurements is not a list of 48-byte hex, each with : and the 32-byte hex of HOST_DATA')
  } else if (isProduction && code.some((item) => item?.hostData === undefined)) {
    faults.push('measurements: production needs HOST_DATA with each, as MEASUREMENT:HOST_DATA')
  }
  if (!isHexList(configHashes, 32)) faults.push('configHashes is not a list of 32-byte hex')
  if (vmpls !== undefined && !isListOf(vmpls, [0, 1, 2, 3])) faults.push('vmpls')
  if (signingKeys !== undefined && !isListOf(signingKeys, ['VCEK', 'VLEK'])) faults.push('signingKeys')
  if (minimumTcb !== undefined && !isMinimumTcb(minimumTcb)) {
    faults.push('minimumTcb is not { product: { fmc | bl | tee | snp | ucode: 0 to 255 } }')
  }
  if (isProduction && minimumTcb === undefined) faults.push('minimumTcb is required in production')
  if (chips !== undefined && !isHexList(chips, 64)) faults.push('chips is not a list of 64-byte hex')
  if (typeof requireRevocations !== 'boolean') faults.push('requireRevocations is neither true nor false')
  if (faults.length > 0) return { faults }
  return {
    policy: {
      kind: 'attested',
      report: {
        measurements: measurements as string[],
        ...(vmpls === undefined ? {} : { vmpls: vmpls as number[] }),
        ...(signingKeys === undefined ? {} : { signingKeys: signingKeys as ('VCEK' | 'VLEK')[] }),
        ...(minimumTcb === undefined ? {} : { minimumTcb: minimumTcb as Partial<Record<SnpProduct, Partial<SnpTcb>>> }),
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

function isListOf(list: unknown, allowed: readonly unknown[]): boolean {
  return Array.isArray(list) && list.length > 0 && list.every((item) => allowed.includes(item))
}

/** A misspelt part would silently be a minimum of zero. */
function isMinimumTcb(value: unknown): boolean {
  return isRecordOf(value, ['Milan', 'Genoa', 'Turin'], (parts) =>
    isRecordOf(
      parts,
      ['fmc', 'bl', 'tee', 'snp', 'ucode'],
      (level) => Number.isInteger(level) && Number(level) >= 0 && Number(level) <= 255,
    ),
  )
}

function isRecordOf(value: unknown, names: readonly string[], isValid: (member: unknown) => boolean): boolean {
  if (!isPlainObject(value)) return false
  const entries = Object.entries(value)
  return entries.length > 0 && entries.every(([name, member]) => names.includes(name) && isValid(member))
}
