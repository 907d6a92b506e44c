import type { TdMeasurement } from '@countersign/attestation'

/** The registers in which a TD measures its code, in the order in which `--measurement` takes them. */
const REGISTERS = ['mrTd', 'rtmr0', 'rtmr1', 'rtmr2', 'rtmr3'] as const

/** How `--measurement` is written; also for people who got it wrong. */
export const MEASUREMENT_FORM = 'MRTD, or MRTD:RTMR0:RTMR1:RTMR2 with or without :RTMR3'

/** MRTD alone, with all registers, or without RTMR3, which the events of a manifest can stand for. */
const COUNTS: readonly number[] = [1, 4, 5]

/** A measurement as `--measurement` takes it. */
export function toMeasurementText(measurement: Required<Pick<TdMeasurement, (typeof REGISTERS)[number]>>): string {
  return REGISTERS.map((name) => measurement[name]).join(':')
}

/** The reverse; nothing where it has another number of parts. `toHex` judges each part. */
export function parseMeasurementText(text: string, toHex: (part: string) => string): TdMeasurement | undefined {
  const parts = text.split(':')
  if (!COUNTS.includes(parts.length)) return undefined
  const [mrTd = '', ...rtmrs] = parts.map(toHex)
  return { mrTd, ...Object.fromEntries(rtmrs.map((rtmr, index) => [`rtmr${index}`, rtmr])) }
}
