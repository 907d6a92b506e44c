import { concatBytes } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type Bytes,
  bitString,
  boolean,
  constructed,
  enumerated,
  integer,
  objectIdentifier,
  octetString,
  primitive,
  printableString,
  sequence,
  set,
  time,
  utf8String,
} from './encodeDer.ts'

/** A key that can issue certificates and revocation lists. */
export type IssuerKey = {
  /** DER SubjectPublicKeyInfo. */
  publicKey: Uint8Array
  /** DER AlgorithmIdentifier of its signatures. */
  algorithm: Uint8Array
  /** The contents of the signature's BIT STRING. */
  sign: (message: Uint8Array) => Uint8Array
}

/** Relative distinguished names in order. As in Intel's and AMD's certificates, a country is a PrintableString, all others UTF8String. */
export type Name = readonly (readonly [attribute: keyof typeof attributeTypes, value: string])[]

const attributeTypes = {
  commonName: '2.5.4.3',
  countryName: '2.5.4.6',
  localityName: '2.5.4.7',
  stateOrProvinceName: '2.5.4.8',
  organizationName: '2.5.4.10',
  organizationalUnitName: '2.5.4.11',
} as const

export type Validity = { notBefore: Date; notAfter: Date }

export type CertificateFields = {
  serial: bigint
  issuer: Name
  subject: Name
  validity: Validity
  /** DER SubjectPublicKeyInfo. */
  publicKey: Uint8Array
  extensions: readonly Uint8Array[]
}

/** RFC 5280 §4.1, version 3. */
export function encodeCertificate(fields: CertificateFields, issuer: IssuerKey): Bytes {
  const { serial, validity, publicKey, extensions } = fields
  return signed(
    sequence(
      constructed(0, integer(2)),
      integer(serial),
      issuer.algorithm,
      encodeName(fields.issuer),
      sequence(time(validity.notBefore), time(validity.notAfter)),
      encodeName(fields.subject),
      publicKey,
      constructed(3, sequence(...extensions)),
    ),
    issuer,
  )
}

export type CrlFields = {
  issuer: Name
  thisUpdate: Date
  /** Required by RFC 5280. Only faulty lists omit it. */
  nextUpdate: Date | undefined
  /** Serial numbers, all revoked at `thisUpdate` for key compromise as in Intel's lists. */
  revoked: readonly bigint[]
}

/** RFC 5280 §5.1, version 2, with the two extensions of Intel's lists: CRL number, then authority key identifier. */
export function encodeCrl({ issuer, thisUpdate, nextUpdate, revoked }: CrlFields, key: IssuerKey): Bytes {
  const keyCompromise = sequence(extension('2.5.29.21', enumerated(1)))
  const entries = revoked.map((serial) => sequence(integer(serial), time(thisUpdate), keyCompromise))
  const list = entries.length === 0 ? [] : [sequence(...entries)]
  const extensions = sequence(extension('2.5.29.20', integer(1)), authorityKeyIdentifier(key.publicKey))
  return signed(
    sequence(
      integer(1),
      key.algorithm,
      encodeName(issuer),
      time(thisUpdate),
      ...(nextUpdate === undefined ? [] : [time(nextUpdate)]),
      ...list,
      constructed(0, extensions),
    ),
    key,
  )
}

function signed(body: Bytes, key: IssuerKey): Bytes {
  return sequence(body, key.algorithm, bitString(key.sign(body)))
}

function encodeName(name: Name): Bytes {
  const parts = name.map(([attribute, value]) => {
    const text = attribute === 'countryName' ? printableString(value) : utf8String(value)
    return set(sequence(objectIdentifier(attributeTypes[attribute]), text))
  })
  return sequence(...parts)
}

/** RFC 5280 §4.2: `critical` is DEFAULT FALSE, so DER leaves it out unless it is true. */
export function extension(type: string, value: Uint8Array, { critical = false } = {}): Bytes {
  return sequence(objectIdentifier(type), ...(critical ? [boolean(true)] : []), octetString(value))
}

/** RFC 7093 §2 method 1, over the SubjectPublicKeyInfo: the first 160 bits of its SHA-256. */
export function keyIdentifier(publicKey: Uint8Array): Uint8Array {
  return sha256(publicKey).subarray(0, 20)
}

export const authorityKeyIdentifier = (publicKey: Uint8Array) =>
  extension('2.5.29.35', sequence(primitive(0, keyIdentifier(publicKey))))

export const subjectKeyIdentifier = (publicKey: Uint8Array) =>
  extension('2.5.29.14', octetString(keyIdentifier(publicKey)))

/** One DistributionPoint with one URI as its full name (RFC 5280 §4.2.1.13). */
export function crlDistributionPoint(uri: string): Bytes {
  const fullName = constructed(0, primitive(6, new TextEncoder().encode(uri)))
  return extension('2.5.29.31', sequence(sequence(constructed(0, fullName))))
}

const keyUsageBits = {
  /** digitalSignature (0) and nonRepudiation (1). */
  signature: bitString(Uint8Array.of(0xc0), 6),
  /** keyCertSign (5). */
  certificates: bitString(Uint8Array.of(0x04), 2),
  /** keyCertSign (5) and cRLSign (6). */
  certificatesAndCrls: bitString(Uint8Array.of(0x06), 1),
}

export const keyUsage = (usage: keyof typeof keyUsageBits) =>
  extension('2.5.29.15', keyUsageBits[usage], { critical: true })

/** `cA` is DEFAULT FALSE, so an end entity has an empty SEQUENCE. */
export function basicConstraints({ isCa, pathLength }: { isCa: boolean; pathLength?: number }): Bytes {
  const limit = isCa && pathLength !== undefined ? [integer(pathLength)] : []
  return extension('2.5.29.19', sequence(...(isCa ? [boolean(true)] : []), ...limit), { critical: true })
}

/** RFC 7468: 64 columns, "\n" at the end of every line. */
export function toPem(...certificates: readonly Uint8Array[]): string {
  return certificates
    .map((certificate) => {
      const lines = toBase64(certificate).match(/.{1,64}/g) ?? []
      return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
    })
    .join('')
}

function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** A serial number of 20 octets whose top bits are 01, so that DER needs no leading zero. */
export function toSerial(bytes: Uint8Array): bigint {
  const octets = concatBytes(bytes.subarray(0, 20))
  octets[0] = ((octets[0] ?? 0) & 0x3f) | 0x40
  return toBigInt(octets)
}

/** Reads an unsigned big-endian integer. */
export function toBigInt(bytes: Uint8Array): bigint {
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  return value
}
