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
import type { MinimumTcb } from './parseManifest.ts'

/** How people write a measurement, as an option or in a form. */
export const MEASUREMENT_FORM =
  'MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG (0 for a register of zeros, nothing for one left open)'

/** All registers, or as older texts have it: MRTD, with or without RTMR0 to RTMR2, with or without RTMR3. */
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
 * The reverse; undefined where it has another number of parts. Only a text with a place for each register may leave one empty: a
 * shorter one would be a text that was cut. `toHex` judges each part.
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

/** People copy hex in either case, with and without 0x; inside there is one spelling. Undefined where it is no hex. */
export function normaliseHex(text: string): string | undefined {
  const hex = text.replace(/^0x/, '').toLowerCase()
  return /^[0-9a-f]*$/.test(hex) ? hex : undefined
}

/** How people write the patch levels that they ask of a product, as an option or in a form. */
export const MINIMUM_TCB_FORM = 'PRODUCT:PART=LEVEL,…, such as Genoa:bl=10,snp=23,ucode=84'

/** One text for each product. One without levels cannot be written: it would ask for nothing. */
export function toMinimumTcbTexts(minimumTcb: MinimumTcb): string[] {
  return snpProducts.flatMap((product) => {
    const levels = snpTcbParts.flatMap((part) => {
      const level = minimumTcb[product]?.[part]
      return level === undefined ? [] : `${part}=${level}`
    })
    return levels.length === 0 ? [] : `${product}:${levels.join(',')}`
  })
}

/** The reverse; undefined where a text has another form, names no level or one twice, or two name one product. */
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

/** How people write a machine, as an option or in a form. */
export const PLATFORM_FORM = 'fmspc:HEX of 6 bytes, or ppid:HEX or platformInstanceId:HEX of 16'

/** A machine as `--platform` takes it. */
export function toPlatformText(platform: TdPlatform): string {
  return Object.entries(platform).flat().join(':')
}

/** The reverse; undefined where it is none. */
export function parsePlatformText(text: string): TdPlatform | undefined {
  const [name = '', ...ids] = text.split(':')
  const platform = { [name]: normaliseHex(ids.join(':')) }
  return isTdPlatform(platform) ? platform : undefined
}

/** How people write the key of a witness, as an option or in a form. */
export const WITNESS_FORM = 'NAME+ID+KEY, as a witness states its Ed25519 key, or the 32 bytes of it in hex'

/** The key in hex; undefined where the text has another form, or is a key of another kind. */
export function parseWitnessText(text: string): string | undefined {
  if (!text.includes('+')) {
    const hex = normaliseHex(text)
    return hex?.length === 64 ? hex : undefined
  }
  return parseWitnessKey(text)
}
