import { equalBytes, fromHex, isZero } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * The fields of a TDX quote, version 4 or 5 (Intel TDX DCAP Quoting Library API, appendix A.3; evidence.md, section 4). Byte
 * fields are views of the quote. Its numbers are little-endian.
 */
export type ParsedQuote = {
  version: 4 | 5
  body: TdReport
  /** Header and body, which the attestation key signs. */
  signed: Bytes
  /** r ‖ s. */
  signature: Bytes
  /** The attestation key, x ‖ y. */
  attestationKey: Bytes
  qeReport: QeReport
  /** r ‖ s over `qeReport.raw`, by the PCK key. */
  qeReportSignature: Bytes
  qeAuthData: Bytes
  /** The PCK certificate chain in PEM, leaf first. */
  pckChain: string
  /** Attestation key, QE report with its signature, and PCK chain: the same in all quotes of a platform. */
  certification: Bytes
  /** The bytes after the signature data. Some quoting services pad with zeros. */
  trailing: Bytes
}

/** The body of a TDX quote: TD report 1.0 (584 bytes), or 1.5 (648 bytes) with the last two fields. */
export type TdReport = {
  kind: 'td10' | 'td15'
  teeTcbSvn: Bytes
  mrSeam: Bytes
  mrSignerSeam: Bytes
  seamAttributes: Bytes
  tdAttributes: Bytes
  xfam: Bytes
  mrTd: Bytes
  mrConfigId: Bytes
  mrOwner: Bytes
  mrOwnerConfig: Bytes
  rtmrs: readonly [Bytes, Bytes, Bytes, Bytes]
  reportData: Bytes
  /** TDX 1.5 only. */
  teeTcbSvn2: Bytes | undefined
  /** TDX 1.5 only. */
  mrServiceTd: Bytes | undefined
}

/** The quoting enclave's SGX report (Intel SDM vol. 3D, REPORT structure, first 384 bytes). */
export type QeReport = {
  raw: Bytes
  miscSelect: Bytes
  attributes: Bytes
  mrSigner: Bytes
  isvProdId: number
  isvSvn: number
  reportData: Bytes
}

const MAX_QUOTE_BYTES = 65_536
const TD_REPORT_BYTES = { td10: 584, td15: 648 } as const
const TEE_TYPE_TDX = 0x81
const ECDSA_P256 = 2
const INTEL_QE_VENDOR = fromHex('939a7233f79c4ca9940a0db3957f0607')
const QE_REPORT_CERTIFICATION = 6
const PCK_CHAIN_CERTIFICATION = 5

/** Reads a TDX quote strictly: every length must be exact. The policy checks that only zeros follow. */
export function parseQuote(quote: Bytes): ParsedQuote {
  if (quote.length > MAX_QUOTE_BYTES) throw malformed('longer than 64 KiB')
  const reader = createReader(quote)
  const version = reader.u16()
  if (version !== 4 && version !== 5) throw unsupported(`quote version ${version}`)
  if (reader.u16() !== ECDSA_P256) throw unsupported('attestation key type')
  if (reader.u32() !== TEE_TYPE_TDX) throw unsupported('not a TDX quote')
  reader.bytes(4) // offset 8: reserved (QE and PCE SVN in version 3)
  if (!equalBytes(reader.bytes(16), INTEL_QE_VENDOR)) throw unsupported('quoting enclave of another vendor')
  reader.bytes(20) // offset 28: user data
  const kind = version === 4 ? 'td10' : readBodyKind(reader)
  const body = readTdReport(kind, createReader(reader.bytes(TD_REPORT_BYTES[kind])))
  const signed = quote.subarray(0, reader.offset())
  const signatureData = createReader(reader.bytes(reader.u32()))
  return { version, body, signed, ...readSignatureData(signatureData), trailing: reader.rest() }
}

/** Version 5, offset 48: body type 2 is TD report 1.0, type 3 is 1.5 (type 1 is an SGX enclave). */
function readBodyKind(reader: Reader): TdReport['kind'] {
  const type = reader.u16()
  const size = reader.u32()
  const kind = type === 2 ? 'td10' : type === 3 ? 'td15' : undefined
  if (kind === undefined) throw unsupported(`quote body type ${type}`)
  if (size !== TD_REPORT_BYTES[kind]) throw malformed('body of the wrong size')
  return kind
}

function readTdReport(kind: TdReport['kind'], reader: Reader): TdReport {
  return {
    kind,
    teeTcbSvn: reader.bytes(16),
    mrSeam: reader.bytes(48),
    mrSignerSeam: reader.bytes(48),
    seamAttributes: reader.bytes(8),
    tdAttributes: reader.bytes(8),
    xfam: reader.bytes(8),
    mrTd: reader.bytes(48),
    mrConfigId: reader.bytes(48),
    mrOwner: reader.bytes(48),
    mrOwnerConfig: reader.bytes(48),
    rtmrs: [reader.bytes(48), reader.bytes(48), reader.bytes(48), reader.bytes(48)],
    reportData: reader.bytes(64),
    teeTcbSvn2: kind === 'td15' ? reader.bytes(16) : undefined,
    mrServiceTd: kind === 'td15' ? reader.bytes(48) : undefined,
  }
}

/** Signature, attestation key, then certification data of type 6 with the QE report and certification data of type 5. */
function readSignatureData(reader: Reader) {
  const signature = reader.bytes(64)
  const certification = reader.peekRest()
  const attestationKey = reader.bytes(64)
  if (reader.u16() !== QE_REPORT_CERTIFICATION) throw unsupported('certification data is not of type 6')
  const outer = createReader(reader.bytes(reader.u32()))
  reader.end()
  const qeReport = readQeReport(outer.bytes(384))
  const qeReportSignature = outer.bytes(64)
  const qeAuthData = outer.bytes(outer.u16())
  if (outer.u16() !== PCK_CHAIN_CERTIFICATION) throw unsupported('QE certification data is not of type 5')
  const pckChain = toPckChain(outer.bytes(outer.u32()))
  outer.end()
  return { signature, certification, attestationKey, qeReport, qeReportSignature, qeAuthData, pckChain }
}

function readQeReport(raw: Bytes): QeReport {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength)
  return {
    raw,
    miscSelect: raw.subarray(16, 20),
    attributes: raw.subarray(48, 64),
    mrSigner: raw.subarray(128, 160),
    isvProdId: view.getUint16(256, true),
    isvSvn: view.getUint16(258, true),
    reportData: raw.subarray(320, 384),
  }
}

/**
 * After the last certificate, the chain may have a line feed, or a line feed and a NUL: some quoting services write a C string. A NUL
 * without a line feed is rejected. Otherwise a change of one byte, NUL for line feed, would be accepted.
 */
function toPckChain(bytes: Bytes): string {
  if (bytes.at(-1) === 0 && bytes.at(-2) !== 0x0a) throw malformed('PCK chain ends in NUL without a line feed')
  const text = new TextDecoder('latin1').decode(bytes.at(-1) === 0 ? bytes.subarray(0, -1) : bytes)
  if (!/^[\n -~]*$/.test(text)) throw malformed('PCK chain is not PEM')
  return text
}

type Reader = ReturnType<typeof createReader>

function createReader(bytes: Bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let offset = 0
  function take(length: number): number {
    const start = offset
    if (length > bytes.length - start) throw malformed('truncated')
    offset += length
    return start
  }
  return {
    offset: () => offset,
    u16: () => view.getUint16(take(2), true),
    u32: () => view.getUint32(take(4), true),
    bytes(length: number) {
      const start = take(length)
      return bytes.subarray(start, start + length)
    },
    peekRest: () => bytes.subarray(offset),
    rest: () => bytes.subarray(take(bytes.length - offset)),
    end() {
      if (offset !== bytes.length) throw malformed('lengths do not add up')
    },
  }
}

function malformed(details: string) {
  return new QuoteError('quote_malformed', 'malformed quote', { details })
}

function unsupported(details: string) {
  return new QuoteError('quote_unsupported', 'unsupported quote', { details })
}

/**
 * Bits of TDATTRIBUTES (body offset 120) and XFAM (128): Intel TDX Module ABI, tables ATTRIBUTES and XFAM. All values are genuine;
 * the reader's policy accepts or rejects them.
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
  /** An undefined bit of TDATTRIBUTES or XFAM is set, or XFAM bit 0 or 1 is clear. */
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
/** XFAM: x87 and SSE must be on. No TDX module allows a bit outside the mask. */
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

/** The TDX module of a TD: Intel's id, which TDX 1.0 does not have, and its SVN. */
export type TdxModuleVersion = { id: string | undefined; svn: number }

/** TEE_TCB_SVN byte 0 is the module's SVN, byte 1 its version, which is 0 for TDX 1.0. */
export function readTdxModule(teeTcbSvn: Uint8Array): TdxModuleVersion {
  const [svn = 0, version = 0] = teeTcbSvn
  return { id: version === 0 ? undefined : `TDX_${version.toString(16).padStart(2, '0').toUpperCase()}`, svn }
}
