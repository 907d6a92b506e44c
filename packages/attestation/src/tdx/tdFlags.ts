import { isZero } from '@countersign/protocol'
import type { TdReport } from './parseQuote.ts'

/**
 * What a TD's attributes say (Intel TDX Module ABI, "ATTRIBUTES" and "XFAM"). None makes a quote less genuine; policy judges.
 */
export type TdFlags = {
  debug: boolean
  septVeDisable: boolean
  migratable: boolean
  /** Supervisor protection keys. */
  pks: boolean
  /** Key locker. */
  keyLocker: boolean
  /** Linear address space separation. */
  lass: boolean
  perfmon: boolean
  /** The TD is a trusted platform agent. */
  tpa: boolean
  /** A bit that the specification does not define, in ATTRIBUTES or XFAM, or an XFAM bit that must be set and is not. */
  reservedBits: boolean
  /** A service TD (one that may migrate this TD) is bound: MRSERVICETD is not zero. */
  serviceTd: boolean
}

const ATTRIBUTE_BITS = {
  debug: 0n,
  lass: 27n,
  septVeDisable: 28n,
  migratable: 29n,
  pks: 30n,
  keyLocker: 31n,
  tpa: 62n,
  perfmon: 63n,
} as const

const KNOWN_ATTRIBUTES = Object.values(ATTRIBUTE_BITS).reduce<bigint>((mask, bit) => mask | (1n << bit), 0n)
/** XFAM: x87 and SSE are always on; the mask is what TDX modules allow at all. */
const XFAM_ALWAYS = 0x3n
const XFAM_KNOWN = 0x6dbe7n

export function readTdFlags(body: TdReport): TdFlags {
  const attributes = toBigInt(body.tdAttributes)
  const xfam = toBigInt(body.xfam)
  const has = (bit: bigint) => ((attributes >> bit) & 1n) === 1n
  return {
    debug: has(ATTRIBUTE_BITS.debug),
    septVeDisable: has(ATTRIBUTE_BITS.septVeDisable),
    migratable: has(ATTRIBUTE_BITS.migratable),
    pks: has(ATTRIBUTE_BITS.pks),
    keyLocker: has(ATTRIBUTE_BITS.keyLocker),
    lass: has(ATTRIBUTE_BITS.lass),
    perfmon: has(ATTRIBUTE_BITS.perfmon),
    tpa: has(ATTRIBUTE_BITS.tpa),
    reservedBits:
      (attributes & ~KNOWN_ATTRIBUTES) !== 0n || (xfam & ~XFAM_KNOWN) !== 0n || (xfam & XFAM_ALWAYS) !== XFAM_ALWAYS,
    serviceTd: body.mrServiceTd !== undefined && !isZero(body.mrServiceTd),
  }
}

/** Little-endian. */
function toBigInt(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0, true)
}
