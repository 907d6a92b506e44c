import { isHex, isPlainObject, toHex } from '@countersign/protocol/core'
import type { TdReport } from './tdx/parseQuote.ts'
import type { PckPlatform } from './tdx/pckCertificate.ts'

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

/** Code of an SEV-SNP guest, lower-case hex: what was launched (48 bytes) and, where it is named, what its host added (32 bytes). */
export type SnpMeasurement = { measurement: string; hostData: string | undefined }

/**
 * Reads how people and policies write it, `MEASUREMENT:HOST_DATA`; undefined for anything else. A host sets HOST_DATA at launch, and
 * guests take the hash of more code or settings from it, so that a measurement alone does not say which code ran.
 */
export function readSnpMeasurement(value: unknown): SnpMeasurement | undefined {
  const match = typeof value === 'string' ? /^([0-9a-f]{96})(?::([0-9a-f]{64}))?$/.exec(value) : null
  return match === null ? undefined : { measurement: match[1] ?? '', hostData: match[2] }
}

/**
 * A machine by an identity that Intel certifies, as lower-case hex. `ppid` names a processor, `platformInstanceId` a machine of
 * several, `fmspc` only a kind of machine. The two of 16 bytes look alike, so that each says which it is.
 */
export type TdPlatform = { fmspc: string } | { ppid: string } | { platformInstanceId: string }

/** In bytes. */
const LENGTHS: Readonly<Record<string, number>> = { fmspc: 6, ppid: 16, platformInstanceId: 16 }

/** Exactly one identity: of two it would not be plain whether either or both must match. */
export function isTdPlatform(value: unknown): value is TdPlatform {
  if (!isPlainObject(value)) return false
  const [entry, ...rest] = Object.entries(value)
  if (entry === undefined || rest.length > 0) return false
  const [name, id] = entry
  return Object.hasOwn(LENGTHS, name) && isHex(id, LENGTHS[name] ?? 0)
}

/** The first of those listed that a genuine platform is. */
export function findPlatform(platform: PckPlatform, listed: readonly TdPlatform[]): TdPlatform | undefined {
  return listed
    .filter(isTdPlatform)
    .find((identity) => Object.entries(identity).every(([name, id]) => platform[name as keyof PckPlatform] === id))
}
