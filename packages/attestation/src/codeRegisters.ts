import { toHex } from '@countersign/protocol'
import type { TdReport } from './tdx/parseQuote.ts'

/**
 * The registers of a TD that can hold code, or say which code is loaded, in the order in which people write them. MRTD is the
 * firmware, RTMR0 to RTMR3 are what it loads and what the guest adds, and the other three are set by the host at launch: Kata
 * puts the hash of its initial data into MRCONFIGID, dstack that of the application. A register that is not used is zero.
 */
export const codeRegisters = [
  'mrTd',
  'rtmr0',
  'rtmr1',
  'rtmr2',
  'rtmr3',
  'mrConfigId',
  'mrOwner',
  'mrOwnerConfig',
] as const

export type CodeRegister = (typeof codeRegisters)[number]

/** Code that is trusted to run in a TD, as lower-case hex; a register that is left out is not judged. */
export type TdMeasurement = { mrTd: string } & { [Name in Exclude<CodeRegister, 'mrTd'>]?: string }

/** Runtime events to accept, by name, each payload as lower-case hex. */
export type AcceptedEvents = Readonly<Record<string, readonly string[]>>

/**
 * The runtime events in which dstack records which application runs and who gives it its keys. Only together do they stand for
 * RTMR3, which differs from guest to guest there: with one left open, another application or another key provider would pass.
 */
export const codeEvents = ['compose-hash', 'app-id', 'key-provider'] as const

/** What a genuine TD measured, with every register that can hold code. */
export function toTdMeasurement({
  mrTd,
  rtmrs,
  mrConfigId,
  mrOwner,
  mrOwnerConfig,
}: TdReport): Required<TdMeasurement> {
  const [rtmr0, rtmr1, rtmr2, rtmr3] = rtmrs
  return {
    mrTd: toHex(mrTd),
    rtmr0: toHex(rtmr0),
    rtmr1: toHex(rtmr1),
    rtmr2: toHex(rtmr2),
    rtmr3: toHex(rtmr3),
    mrConfigId: toHex(mrConfigId),
    mrOwner: toHex(mrOwner),
    mrOwnerConfig: toHex(mrOwnerConfig),
  }
}

/** The registers that neither the measurement nor the events fix: each could hold anybody's code. */
export function findOpenRegisters(measurement: Partial<TdMeasurement>, events: AcceptedEvents = {}): CodeRegister[] {
  const areEventsFixed = findOpenEvents(events).length === 0
  return codeRegisters.filter((name) => measurement[name] === undefined && !(name === 'rtmr3' && areEventsFixed))
}

/** Which of `codeEvents` are not named. */
export function findOpenEvents(events: AcceptedEvents = {}): string[] {
  return codeEvents.filter((name) => !Object.hasOwn(events, name))
}
