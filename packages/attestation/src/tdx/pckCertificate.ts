import { toHex } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'
import { assertTag, type Der, DerError, parseChildren, parseDer, tags, toNumber, toOid } from '../x509/der.ts'
import { type Certificate, parseCertificate } from '../x509/parseCertificate.ts'
import { parsePem } from '../x509/pem.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * A platform, from the SGX extension of its PCK certificate (Intel SGX PCK Certificate and CRL Profile Specification, section 1.3.5;
 * evidence.md, section 6.1).
 */
export type PckPlatform = {
  ppid: string
  fmspc: string
  pceId: string
  /** The 16 SVNs of the SGX TCB. */
  components: readonly number[]
  pceSvn: number
  /** Only on machines with several processors. */
  platformInstanceId: string | undefined
}

const SGX = '1.2.840.113741.1.13.1'

/**
 * Reads the platform from the first certificate of a quote's PCK chain. It verifies nothing.
 *
 * @example
 * const { fmspc } = parsePckPlatform(parseQuote(quote).pckChain) // for a request to Intel's PCS
 */
export function parsePckPlatform(pckChain: string): PckPlatform {
  const [pck = new Uint8Array()] = parsePem(pckChain)
  return parsePckExtension(parseCertificate(pck))
}

export function parsePckExtension(certificate: Certificate): PckPlatform {
  const extension = certificate.extensions.get(SGX)
  try {
    if (extension === undefined) throw new DerError('no SGX extension')
    return readExtension(extension.value)
  } catch (cause) {
    if (!(cause instanceof DerError)) throw cause
    throw new QuoteError('certificate_malformed', 'malformed PCK certificate', { details: cause.message, cause })
  }
}

function readExtension(value: Bytes): PckPlatform {
  const fields = toFields(parseDer(value, tags.sequence), SGX)
  const tcb = toFields(assertTag(fields.get('2'), tags.sequence), `${SGX}.2`)
  const instance = fields.get('6')
  toOctets(tcb.get('18'), 16) // CPUSVN: the same SVNs in another format
  toNumber(fields.get('5'), 2, tags.enumerated) // SGX type: standard, scalable, scalable with integrity
  // Frozen, since the verifier caches it and returns it to callers.
  return Object.freeze({
    ppid: toHex(toOctets(fields.get('1'), 16)),
    components: Object.freeze(Array.from({ length: 16 }, (_, index) => toNumber(tcb.get(String(index + 1)), 255))),
    pceSvn: toNumber(tcb.get('17'), 65_535),
    pceId: toHex(toOctets(fields.get('3'), 2)),
    fmspc: toHex(toOctets(fields.get('4'), 6)),
    platformInstanceId: instance === undefined ? undefined : toHex(toOctets(instance, 16)),
  })
}

/** A SEQUENCE of { OBJECT IDENTIFIER, value } pairs, by the last arc of the identifier. */
function toFields(sequence: Der, parent: string): Map<string, Der> {
  const fields = new Map<string, Der>()
  for (const pair of parseChildren(sequence)) {
    const [oid, value, ...rest] = parseChildren(assertTag(pair, tags.sequence))
    const name = toOid(oid)
    const arc = name.slice(parent.length + 1)
    if (!name.startsWith(`${parent}.`) || value === undefined || rest.length > 0) throw new DerError(`field ${name}`)
    if (fields.has(arc)) throw new DerError(`field ${name} twice`)
    fields.set(arc, value)
  }
  return fields
}

function toOctets(element: Der | undefined, length: number): Bytes {
  const { value } = assertTag(element, tags.octetString)
  if (value.length !== length) throw new DerError(`octet string is not ${length} bytes long`)
  return value
}
