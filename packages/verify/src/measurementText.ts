import { type CodeRegister, codeRegisters, type TdMeasurement } from '@countersign/attestation'

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
