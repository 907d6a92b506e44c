import { equalBytes, fromHex, toHex } from '@countersign/protocol/core'
import type { Curve } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import {
  assertTag,
  type Der,
  DerError,
  parseChildren,
  parseDer,
  tags,
  toAscii,
  toBoolean,
  toNumber,
  toOctets,
  toOid,
  toRawEcdsaSignature,
  toTime,
  toUnsigned,
} from './der.ts'

type Bytes = Uint8Array<ArrayBuffer>

type PublicKey = { kind: 'ec'; curve: Curve; point: Bytes; spki: Bytes } | { kind: 'rsa'; spki: Bytes }

export type SignatureAlgorithm = 'ecdsa-sha256' | 'rsa-pss-sha384'

export type Extension = { critical: boolean; value: Bytes }

/** An X.509 v3 certificate (RFC 5280 §4.1; evidence.md, section 3.3). Names are their exact bytes. */
export type Certificate = {
  der: Bytes
  /** The signed part. */
  tbs: Bytes
  serial: string
  issuer: Bytes
  subject: Bytes
  commonName: string
  notBefore: number
  notAfter: number
  publicKey: PublicKey
  isCa: boolean
  pathLength: number | undefined
  keyUsage: { digitalSignature: boolean; certSign: boolean; crlSign: boolean } | undefined
  extensions: ReadonlyMap<string, Extension>
  signatureAlgorithm: SignatureAlgorithm
  /** r ‖ s for ECDSA. */
  signature: Bytes
}

const MAX_CERTIFICATE_BYTES = 16_384

const oids = {
  commonName: '2.5.4.3',
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
}

/** The extensions that may be critical, because this code checks them (RFC 5280 §4.2). */
const UNDERSTOOD = new Set([oids.keyUsage, oids.basicConstraints])

const NAME_STRINGS: readonly number[] = [tags.utf8String, tags.printableString, tags.ia5String]

// AlgorithmIdentifiers are compared as bytes: no other parameters are allowed.
const ECDSA_SHA256 = fromHex('300a06082a8648ce3d040302')
const EC_P256 = fromHex('301306072a8648ce3d020106082a8648ce3d030107')
const EC_P384 = fromHex('301006072a8648ce3d020106052b81040022')
const RSA = fromHex('300d06092a864886f70d0101010500')
// RSASSA-PSS, SHA-384, MGF1 with SHA-384, salt 48 (RFC 4055 §3.1). AMD's VCEK certificates also spell out the default
// trailer field, which DER forbids; both spellings occur in genuine certificates.
const PSS_HASHES = 'a00f300d06096086480165030402020500a11c301a06092a864886f70d010108300d06096086480165030402020500'
const RSA_PSS_SHA384 = fromHex(`304106092a864886f70d01010a3034${PSS_HASHES}a203020130`)
const RSA_PSS_SHA384_WITH_TRAILER = fromHex(`304606092a864886f70d01010a3039${PSS_HASHES}a203020130a303020101`)

export function parseCertificate(der: Bytes): Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) throw new QuoteError('certificate_malformed', 'certificate too large')
  try {
    return readCertificate(der)
  } catch (cause) {
    if (!(cause instanceof DerError)) throw cause
    throw new QuoteError('certificate_malformed', 'malformed certificate', { details: cause.message, cause })
  }
}

function readCertificate(der: Bytes): Certificate {
  const [tbs, outerAlgorithm, signature, ...rest] = parseChildren(parseDer(der, tags.sequence))
  if (rest.length > 0) throw new DerError('unexpected element after the signature')
  const fields = parseChildren(assertTag(tbs, tags.sequence))
  const [version, serial, algorithm, issuer, validity, subject, spki, extensions, ...more] = fields
  if (more.length > 0) throw new DerError('unexpected element after the extensions')
  const [versionNumber, ...noMore] = parseChildren(assertTag(version, tags.context(0)))
  if (toNumber(versionNumber, 2) !== 2 || noMore.length > 0) throw new DerError('not a version 3 certificate')
  const signatureAlgorithm = toSignatureAlgorithm(algorithm, outerAlgorithm)
  const [notBefore, notAfter, ...noTimes] = parseChildren(assertTag(validity, tags.sequence))
  if (noTimes.length > 0) throw new DerError('malformed validity')
  toCommonName(assertTag(issuer, tags.sequence))
  const extensionMap = toExtensions(extensions)
  const basicConstraints = toBasicConstraints(extensionMap.get(oids.basicConstraints))
  return {
    der,
    tbs: assertTag(tbs, tags.sequence).raw,
    serial: toSerial(serial),
    issuer: assertTag(issuer, tags.sequence).raw,
    subject: assertTag(subject, tags.sequence).raw,
    commonName: toCommonName(assertTag(subject, tags.sequence)),
    notBefore: toTime(notBefore),
    notAfter: toTime(notAfter),
    publicKey: toPublicKey(assertTag(spki, tags.sequence)),
    isCa: basicConstraints.isCa,
    pathLength: basicConstraints.pathLength,
    keyUsage: toKeyUsage(extensionMap.get(oids.keyUsage)),
    extensions: extensionMap,
    signatureAlgorithm,
    signature: toSignature(signatureAlgorithm, signature),
  }
}

/** Serial numbers are compared as the hex of their unsigned value. */
export function toSerial(element: Der | undefined): string {
  const bytes = toUnsigned(element)
  if (bytes.length > 20) throw new DerError('serial number too long')
  return toHex(bytes)
}

/** The algorithm. It must be the same inside and outside the signed part (RFC 5280 §4.1.1.2). */
export function toSignatureAlgorithm(inner: Der | undefined, outer: Der | undefined): SignatureAlgorithm {
  const { raw } = assertTag(inner, tags.sequence)
  if (!equalBytes(raw, assertTag(outer, tags.sequence).raw)) throw new DerError('signature algorithms differ')
  if (equalBytes(raw, ECDSA_SHA256)) return 'ecdsa-sha256'
  if (equalBytes(raw, RSA_PSS_SHA384) || equalBytes(raw, RSA_PSS_SHA384_WITH_TRAILER)) return 'rsa-pss-sha384'
  throw new DerError('unsupported signature algorithm')
}

export function toSignature(algorithm: SignatureAlgorithm, element: Der | undefined): Bytes {
  const octets = toOctets(element)
  return algorithm === 'ecdsa-sha256' ? toRawEcdsaSignature(octets, 32) : octets
}

function toPublicKey(spki: Der): PublicKey {
  const [algorithm, key, ...rest] = parseChildren(spki)
  if (rest.length > 0) throw new DerError('malformed public key')
  const { raw } = assertTag(algorithm, tags.sequence)
  const point = toOctets(key)
  if (equalBytes(raw, RSA)) return { kind: 'rsa', spki: spki.raw }
  const curve = equalBytes(raw, EC_P256) ? 'P-256' : equalBytes(raw, EC_P384) ? 'P-384' : undefined
  if (curve === undefined) throw new DerError('unsupported public key')
  if (point[0] !== 4 || point.length !== (curve === 'P-256' ? 65 : 97)) throw new DerError('malformed public key')
  return { kind: 'ec', curve, point, spki: spki.raw }
}

/** The common name of a Name (RFC 5280 §4.1.2.4), whose every attribute must be well formed. */
function toCommonName(name: Der): string {
  let commonName = ''
  for (const set of parseChildren(name)) {
    for (const attribute of parseChildren(assertTag(set, tags.set))) {
      const [type, value, ...rest] = parseChildren(assertTag(attribute, tags.sequence))
      if (value === undefined || rest.length > 0 || !NAME_STRINGS.includes(value.tag))
        throw new DerError('malformed name')
      if (toOid(type) !== oids.commonName) continue
      if (commonName !== '') throw new DerError('two common names')
      commonName = toAscii(value.value)
    }
  }
  return commonName
}

/** `[3] EXPLICIT Extensions` of a certificate, or `[0]` of a CRL; each extension at most once (RFC 5280 §4.2). */
export function toExtensions(wrapper: Der | undefined, tag: number = tags.context(3)): Map<string, Extension> {
  const extensions = new Map<string, Extension>()
  if (wrapper === undefined) return extensions
  const [list, ...rest] = parseChildren(assertTag(wrapper, tag))
  if (rest.length > 0) throw new DerError('malformed extensions')
  for (const extension of parseChildren(assertTag(list, tags.sequence))) {
    const parts = parseChildren(assertTag(extension, tags.sequence))
    const oid = toOid(parts[0])
    const critical = parts.length === 3 && toBoolean(assertTag(parts[1], tags.boolean))
    if (parts.length === 3 && !critical) throw new DerError('default value included')
    if (parts.length < 2 || parts.length > 3) throw new DerError('malformed extension')
    if (extensions.has(oid)) throw new DerError(`extension ${oid} twice`)
    extensions.set(oid, { critical, value: assertTag(parts.at(-1), tags.octetString).value })
  }
  return extensions
}

/** The first critical extension that this code does not check. It makes a certificate unusable. */
export function findUnknownCritical(extensions: ReadonlyMap<string, Extension>): string | undefined {
  for (const [oid, { critical }] of extensions) if (critical && !UNDERSTOOD.has(oid)) return oid
  return undefined
}

function toBasicConstraints(extension: Extension | undefined): { isCa: boolean; pathLength: number | undefined } {
  if (extension === undefined) return { isCa: false, pathLength: undefined }
  const [ca, pathLength, ...rest] = parseChildren(parseDer(extension.value, tags.sequence))
  if (ca === undefined) return { isCa: false, pathLength: undefined }
  if (!toBoolean(ca) || rest.length > 0) throw new DerError('malformed basic constraints')
  return { isCa: true, pathLength: pathLength === undefined ? undefined : toNumber(pathLength, 255) }
}

/** RFC 5280 §4.2.1.3: bit 0 digitalSignature, bit 5 keyCertSign, bit 6 cRLSign; all within the first octet. */
function toKeyUsage(extension: Extension | undefined): Certificate['keyUsage'] {
  if (extension === undefined) return undefined
  const { value } = parseDer(extension.value, tags.bitString)
  const bits = value[1]
  if (bits === undefined || value.length > 3) throw new DerError('malformed key usage')
  return {
    digitalSignature: (bits & 0x80) !== 0,
    certSign: (bits & 0x04) !== 0,
    crlSign: (bits & 0x02) !== 0,
  }
}
