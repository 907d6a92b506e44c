import type { TdMeasurement } from '@countersign/attestation'
import { VerifierError } from './errors.ts'

/** The registers in which a TD measures its code, in the order in which people write them. */
const REGISTERS = ['mrTd', 'rtmr0', 'rtmr1', 'rtmr2', 'rtmr3'] as const

/** How people write a measurement, as an option or in a form. */
export const MEASUREMENT_FORM = 'MRTD, or MRTD:RTMR0:RTMR1:RTMR2 with or without :RTMR3'

/** MRTD alone, with all registers, or without RTMR3, which the events of a manifest can stand for. */
const COUNTS: readonly number[] = [1, 4, 5]

/**
 * A measurement as `--measurement` takes it. Throws where that text cannot say it: with a register left out in between it would be
 * read back as another measurement.
 */
export function toMeasurementText(measurement: TdMeasurement): string {
  const text = REGISTERS.flatMap((name) => measurement[name] ?? []).join(':')
  const read = parseMeasurementText(text, (part) => part)
  const names = new Set([...Object.keys(measurement), ...Object.keys(read ?? {})]) as Set<keyof TdMeasurement>
  if (read === undefined || [...names].some((name) => read[name] !== measurement[name])) {
    throw new VerifierError('invalid_arguments', 'this measurement cannot be written as one text', {
      details: `it names ${Object.keys(measurement).join(', ')}; the form is ${MEASUREMENT_FORM}`,
    })
  }
  return text
}

/** The reverse; undefined where it has another number of parts. `toHex` judges each part. */
export function parseMeasurementText(text: string, toHex: (part: string) => string): TdMeasurement | undefined {
  const parts = text.split(':')
  if (!COUNTS.includes(parts.length)) return undefined
  const [mrTd = '', ...rtmrs] = parts.map(toHex)
  return { mrTd, ...Object.fromEntries(rtmrs.map((rtmr, index) => [`rtmr${index}`, rtmr])) }
}

/** People copy hex in either case, with and without 0x; inside there is one spelling. Undefined where it is no hex. */
export function normaliseHex(text: string): string | undefined {
  const hex = text.replace(/^0x/, '').toLowerCase()
  return /^[0-9a-f]*$/.test(hex) ? hex : undefined
}
