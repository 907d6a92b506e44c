import { isHex, isPlainObject, toHex } from '@countersign/protocol/core'
import type { TdReport } from './tdx/parseQuote.ts'
import type { PckPlatform } from './tdx/pckCertificate.ts'

/**
 * The registers of a TD that can hold code or decide which code is loaded (evidence.md, section 8). MRTD measures the firmware,
 * RTMR0 to RTMR3 the code that it loads and the guest's own events. The host sets the other three at launch: Kata puts the hash of
 * its initial data into MRCONFIGID, dstack that of the application. Unused registers are zero.
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

/** Code that is trusted to run in a TD, as lower-case hex. A register that is left out is not compared. */
export type TdMeasurement = { mrTd: string } & { [Name in Exclude<CodeRegister, 'mrTd'>]?: string }

/** Run-time events to accept, by name, each payload as lower-case hex. */
export type AcceptedEvents = Readonly<Record<string, readonly string[]>>

/**
 * The run-time events in which dstack records the application and the provider of its keys. RTMR3 differs between its guests, and
 * these three together replace it: without one of them, another application or key provider would pass.
 */
export const codeEvents = ['compose-hash', 'app-id', 'key-provider'] as const

/** Every register of a genuine TD that can hold code. */
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

/** The registers that neither the measurement nor the events name: each could hold any code. */
export function findOpenRegisters(measurement: Partial<TdMeasurement>, events: AcceptedEvents = {}): CodeRegister[] {
  const areEventsFixed = findOpenEvents(events).length === 0
  return codeRegisters.filter((name) => measurement[name] === undefined && !(name === 'rtmr3' && areEventsFixed))
}

/** Which of `codeEvents` are not named. */
export function findOpenEvents(events: AcceptedEvents = {}): string[] {
  return codeEvents.filter((name) => !Object.hasOwn(events, name))
}

/** Code of an SEV-SNP guest, lower-case hex: the launch measurement (48 bytes) and, optionally, HOST_DATA (32 bytes). */
export type SnpMeasurement = { measurement: string; hostData: string | undefined }

/**
 * Reads `MEASUREMENT:HOST_DATA` or `MEASUREMENT`; undefined for other values. A host sets HOST_DATA at launch, and guests take the
 * hash of more code or settings from it, so the measurement does not identify the code by itself.
 */
export function readSnpMeasurement(value: unknown): SnpMeasurement | undefined {
  const match = typeof value === 'string' ? /^([0-9a-f]{96})(?::([0-9a-f]{64}))?$/.exec(value) : null
  return match === null ? undefined : { measurement: match[1] ?? '', hostData: match[2] }
}

/**
 * A machine by an identity that Intel certifies, as lower-case hex. `ppid` identifies a processor, `platformInstanceId` a machine
 * with several, and `fmspc` only a model of machine. Two of them have 16 bytes, so the name of the member is needed.
 */
export type TdPlatform = { fmspc: string } | { ppid: string } | { platformInstanceId: string }

/** In bytes. */
const LENGTHS: Readonly<Record<string, number>> = { fmspc: 6, ppid: 16, platformInstanceId: 16 }

/** Exactly one identity. With two, it would be unclear whether one or both must match. */
export function isTdPlatform(value: unknown): value is TdPlatform {
  if (!isPlainObject(value)) return false
  const [entry, ...rest] = Object.entries(value)
  if (entry === undefined || rest.length > 0) return false
  const [name, id] = entry
  return Object.hasOwn(LENGTHS, name) && isHex(id, LENGTHS[name] ?? 0)
}

/** The first listed identity that a genuine platform has. */
export function findPlatform(platform: PckPlatform, listed: readonly TdPlatform[]): TdPlatform | undefined {
  return listed
    .filter(isTdPlatform)
    .find((identity) => Object.entries(identity).every(([name, id]) => platform[name as keyof PckPlatform] === id))
}
