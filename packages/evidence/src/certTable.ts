import { concatBytes, fromHex, isZero, toHex } from '@countersign/protocol/core'
import { EvidenceError } from './errors.ts'
import { MAX_CERTIFICATES_LENGTH } from './source.ts'

/** Certificates from a host with a report: DER, not verified. */
export type SnpCertificates = {
  readonly vcek?: Uint8Array
  readonly vlek?: Uint8Array
  /** The ASVK for a report signed by the VLEK. */
  readonly ask?: Uint8Array
  readonly ark?: Uint8Array
}

const ENTRY_LENGTH = 24
const GUID_LENGTH = 16

/**
 * GHCB standardization (AMD 56421) section 4.1.8.1. The bytes of a GUID are in the order of its text (RFC 4122), not in Microsoft's mixed
 * order:
 * `uuid.Parse` in google/go-sev-guest `abi/abi.go`, `Uuid::from_slice` in virtee/sev `src/firmware/guest/cert_table.rs`.
 */
const GUIDS = {
  vcek: '63da758de6644564adc5f4b93be8accd',
  vlek: 'a8074bc2a25a483eaae639c045a0b8a1',
  ask: '4ab7b379bbac4fe4a02f05aef327c782',
  ark: 'c0b406a4a803495297433fb6014cd0ae',
} as const satisfies Record<keyof SnpCertificates, string>

const NAMES = ['vcek', 'vlek', 'ask', 'ark'] as const

/**
 * Parses the certificate table of a SEV-SNP report. The table comes unprotected from the host, so it is untrusted. Rejects entries outside
 * the
 * table, in its header or overlapping, and duplicates. Checks and ignores entries of other kinds.
 *
 * @example
 * const { vcek, ask, ark } = parseCertTable(report.certificates ?? new Uint8Array())
 */
export function parseCertTable(table: Uint8Array): SnpCertificates {
  if (table.length > MAX_CERTIFICATES_LENGTH) throw malformed('longer than 64 KiB')
  // Without certificates from the host, the kernel gives an empty table without a terminator.
  if (table.length === 0) return {}
  const { entries, headerLength } = parseHeader(table)
  const byOffset = [...entries].sort((left, right) => left.offset - right.offset)
  let end = headerLength
  for (const { offset, length } of byOffset) {
    if (length === 0) throw malformed('empty entry')
    if (offset < end) throw malformed('entries overlap')
    end = offset + length
    if (end > table.length) throw malformed('entry beyond the end')
  }
  const found = new Map<string, Uint8Array>()
  for (const { guid, offset, length } of entries) {
    if (found.has(guid)) throw malformed('two entries of one kind')
    found.set(guid, table.slice(offset, offset + length))
  }
  const certificates: { -readonly [Name in keyof SnpCertificates]: SnpCertificates[Name] } = {}
  for (const name of NAMES) {
    const certificate = found.get(GUIDS[name])
    if (certificate) certificates[name] = certificate
  }
  return certificates
}

/** Encodes a certificate table. Only the simulator uses it. */
export function toCertTable(certificates: SnpCertificates): Uint8Array {
  const present = NAMES.flatMap((name) => {
    const certificate = certificates[name]
    return certificate ? [{ guid: fromHex(GUIDS[name]), certificate }] : []
  })
  const header = new Uint8Array((present.length + 1) * ENTRY_LENGTH)
  const view = new DataView(header.buffer)
  let offset = header.length
  for (const [index, { guid, certificate }] of present.entries()) {
    header.set(guid, index * ENTRY_LENGTH)
    view.setUint32(index * ENTRY_LENGTH + GUID_LENGTH, offset, true)
    view.setUint32(index * ENTRY_LENGTH + GUID_LENGTH + 4, certificate.length, true)
    offset += certificate.length
  }
  return concatBytes(header, ...present.map(({ certificate }) => certificate))
}

function parseHeader(table: Uint8Array) {
  const view = new DataView(table.buffer, table.byteOffset, table.byteLength)
  const entries: { guid: string; offset: number; length: number }[] = []
  for (let start = 0; start + ENTRY_LENGTH <= table.length; start += ENTRY_LENGTH) {
    const entry = table.subarray(start, start + ENTRY_LENGTH)
    if (isZero(entry)) return { entries, headerLength: start + ENTRY_LENGTH }
    const guid = entry.subarray(0, GUID_LENGTH)
    if (isZero(guid)) throw malformed('entry without a kind')
    entries.push({
      guid: toHex(guid),
      offset: view.getUint32(start + GUID_LENGTH, true),
      length: view.getUint32(start + GUID_LENGTH + 4, true),
    })
  }
  throw malformed('no terminator')
}

function malformed(details: string) {
  return new EvidenceError('cert_table_malformed', 'not a SEV-SNP certificate table', { details })
}
