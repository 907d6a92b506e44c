import {
  type CodeRegister,
  codeRegisters,
  isTdPlatform,
  snpProducts,
  snpTcbParts,
  type TdMeasurement,
  type TdPlatform,
} from '@countersign/attestation'
import { parseWitnessKey } from '@countersign/log'
import { isAddress } from '@countersign/protocol'
import type { LogContract } from '@countersign/receipt'
import type { MinimumTcb } from './parseManifest.ts'

/** The text form of a measurement, in an option or a form field. */
export const MEASUREMENT_FORM =
  'MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG (0 for a register of zeros, empty for an unchecked one)'

/** All registers, or an older form: MRTD, optionally RTMR0 to RTMR2, optionally RTMR3. */
const COUNTS: readonly number[] = [1, 4, 5, codeRegisters.length]

const ZERO = '0'.repeat(96)

/** A measurement as `--measurement` takes it. */
export function toMeasurementText(measurement: TdMeasurement): string {
  const parts = codeRegisters.map((name) => (measurement[name] === ZERO ? '0' : (measurement[name] ?? '')))
  const named = parts.findLastIndex((part) => part !== '') + 1
  const isOldForm = COUNTS.includes(named) && !parts.slice(0, named).includes('')
  return parts.slice(0, isOldForm ? named : undefined).join(':')
}

/**
 * Parses a measurement; undefined if the number of parts is wrong. Only the full form may have empty registers, because a shorter text may
 * have been cut off. `toHex` checks each part.
 */
export function parseMeasurementText(text: string, toHex: (part: string) => string): TdMeasurement | undefined {
  const parts = text.split(':')
  if (!COUNTS.includes(parts.length)) return undefined
  const measurement: Partial<Record<CodeRegister, string>> & { mrTd: string } = { mrTd: '' }
  for (const [index, name] of codeRegisters.slice(0, parts.length).entries()) {
    const part = parts[index] ?? ''
    const isOpen = part === '' && index > 0 && parts.length === codeRegisters.length
    if (!isOpen) measurement[name] = part === '0' ? ZERO : toHex(part)
  }
  return measurement
}

/** Accepts both cases and a 0x prefix. Undefined if the text is not hex. */
export function normaliseHex(text: string): string | undefined {
  const hex = text.replace(/^0x/, '').toLowerCase()
  return /^[0-9a-f]*$/.test(hex) ? hex : undefined
}

/** The text form of minimum patch levels, in an option or a form field. */
export const MINIMUM_TCB_FORM = 'PRODUCT:PART=LEVEL,…, such as Genoa:bl=10,snp=23,ucode=84'

/** One text for each product that has levels. */
export function toMinimumTcbTexts(minimumTcb: MinimumTcb): string[] {
  return snpProducts.flatMap((product) => {
    const levels = snpTcbParts.flatMap((part) => {
      const level = minimumTcb[product]?.[part]
      return level === undefined ? [] : `${part}=${level}`
    })
    return levels.length === 0 ? [] : `${product}:${levels.join(',')}`
  })
}

/** Parses minimum patch levels; undefined if a text is malformed, has no levels or repeats one, or if two name the same product. */
export function parseMinimumTcbTexts(texts: readonly string[]): MinimumTcb | undefined {
  const minimumTcb: Record<string, Record<string, number>> = {}
  for (const text of texts) {
    const [name, levels, ...more] = text.split(':')
    const product = snpProducts.find((candidate) => candidate === name)
    if (product === undefined || levels === undefined || more.length > 0 || minimumTcb[product]) return undefined
    const parts: Record<string, number> = {}
    for (const assignment of levels.split(',')) {
      const [, part = '', level] = /^([a-z]+)=(0|[1-9]\d{0,2})$/.exec(assignment) ?? []
      const isPart = (snpTcbParts as readonly string[]).includes(part)
      if (!isPart || Object.hasOwn(parts, part) || Number(level) > 255) return undefined
      parts[part] = Number(level)
    }
    minimumTcb[product] = parts
  }
  return minimumTcb
}

/** The text form of a machine, in an option or a form field. */
export const PLATFORM_FORM = 'fmspc:HEX of 6 bytes, or ppid:HEX or platformInstanceId:HEX of 16'

/** A machine as `--platform` takes it. */
export function toPlatformText(platform: TdPlatform): string {
  return Object.entries(platform).flat().join(':')
}

/** Undefined if the text is malformed. */
export function parsePlatformText(text: string): TdPlatform | undefined {
  const [name = '', ...ids] = text.split(':')
  const platform = { [name]: normaliseHex(ids.join(':')) }
  return isTdPlatform(platform) ? platform : undefined
}

/** The text form of a witness key, in an option or a form field. */
export const WITNESS_FORM = 'NAME+ID+KEY, as a witness publishes its Ed25519 key, or 32 bytes of hex'

/** The key in hex; undefined if the text is malformed or the key has another type. */
export function parseWitnessText(text: string): string | undefined {
  if (!text.includes('+')) {
    const hex = normaliseHex(text)
    return hex?.length === 64 ? hex : undefined
  }
  return parseWitnessKey(text)
}

/** The text form of a log whose checkpoints on the chain count, in an option or a form field. */
export const LOG_CONTRACT_FORM =
  'CONTRACT:ID or CONTRACT:ID:SIZE, with an address, 32 bytes of hex, and the last size that counts'

/** One text for each log. */
export function toLogContractTexts(contracts: readonly LogContract[]): string[] {
  return contracts.flatMap(({ address, logs }) =>
    logs.map(({ id, upTo }) => [address, id, ...(upTo === undefined ? [] : [upTo])].join(':')),
  )
}

/** Undefined if the text is malformed or the address has a wrong checksum. */
export function parseLogContractText(text: string): LogContract | undefined {
  const form = /^(?:0x)?([\da-f]{40}):(?:0x)?([\da-f]{64})(?::([1-9]\d{0,14}))?$/i
  const [, address = '', id = '', size] = form.exec(text) ?? []
  if (!isAddress(`0x${address}`)) return undefined
  const upTo = size === undefined ? {} : { upTo: Number(size) }
  return { address: `0x${address.toLowerCase()}`, logs: [{ id: `0x${id.toLowerCase()}`, ...upTo }] }
}
