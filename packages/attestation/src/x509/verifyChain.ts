import { equalBytes, toHex } from '@countersign/protocol/core'
import { digest, importEcKey, importRsaKey, inOrder, verifyEcdsa, verifyRsaPss } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import type { TrustedRoot } from '../roots.ts'
import { type Certificate, findUnknownCritical, parseCertificate } from './parseCertificate.ts'
import type { Crl } from './parseCrl.ts'
import { decodePemBlock, splitPem } from './pem.ts'

/** Reads certificates for one verification. A certificate in several chains is parsed, hashed and its key imported once. */
export type CertificateReader = {
  /** The certificates of a PEM bundle, in its order. */
  readPem(text: string): Certificate[]
  /** Whether `issuer`'s key made this signature. */
  isSignedBy(
    signed: Pick<Certificate, 'tbs' | 'signatureAlgorithm' | 'signature'>,
    issuer: Certificate,
  ): Promise<boolean>
  keyOf(certificate: Certificate): Promise<CryptoKey>
  fingerprintOf(certificate: Certificate): Promise<string>
}

export function createCertificateReader(): CertificateReader {
  const certificates = new Map<string, Certificate>()
  const keys = new Map<Certificate, Promise<CryptoKey>>()
  const fingerprints = new Map<Certificate, Promise<string>>()

  function keyOf(certificate: Certificate) {
    const { publicKey } = certificate
    return getOrCreate(keys, certificate, () =>
      publicKey.kind === 'rsa' ? importRsaKey(publicKey.spki) : importEcKey(publicKey.curve, publicKey.point),
    )
  }

  return {
    keyOf,
    readPem: (text) =>
      splitPem(text).map((body) => getOrCreate(certificates, body, () => parseCertificate(decodePemBlock(body)))),
    fingerprintOf: (certificate) =>
      getOrCreate(fingerprints, certificate, async () => toHex(await digest('SHA-256', certificate.der))),
    async isSignedBy({ tbs, signatureAlgorithm, signature }, issuer) {
      const { publicKey } = issuer
      if (signatureAlgorithm === 'rsa-pss-sha384') {
        return publicKey.kind === 'rsa' && verifyRsaPss(await keyOf(issuer), signature, tbs)
      }
      const isP256 = publicKey.kind === 'ec' && publicKey.curve === 'P-256'
      return isP256 && verifyEcdsa(await keyOf(issuer), 'P-256', signature, tbs)
    },
  }
}

function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const value = create()
  map.set(key, value)
  return value
}

/** The time in which a set of facts is valid, in milliseconds. Both ends are inclusive. */
export type ValidityWindow = { notBefore: number; notAfter: number }

export function intersectWindows(windows: readonly ValidityWindow[]): ValidityWindow {
  return {
    notBefore: Math.max(...windows.map(({ notBefore }) => notBefore)),
    notAfter: Math.min(...windows.map(({ notAfter }) => notAfter)),
  }
}

export function isWithin(window: ValidityWindow, at: number): boolean {
  return at >= window.notBefore && at <= window.notAfter
}

/**
 * Verifies a certificate path, leaf first, up to one of the pinned roots, at a given time (RFC 5280 §6.1 for a path without
 * policies or name constraints; evidence.md, section 3.4). The root must be in the path. Its hash is checked, not its signature.
 */
export async function verifyChain(
  reader: CertificateReader,
  { chain, roots, at }: { chain: readonly Certificate[]; roots: readonly TrustedRoot[]; at: number },
): Promise<TrustedRoot> {
  for (const [index, certificate] of chain.entries()) {
    if (!isWithin(certificate, at)) {
      throw new QuoteError('certificate_not_in_date', 'certificate not in date', { details: certificate.commonName })
    }
    const unknown = findUnknownCritical(certificate.extensions)
    if (unknown !== undefined) throw invalidChain(`critical extension ${unknown} in ${certificate.commonName}`)
    const issuer = chain[index + 1]
    if (issuer !== undefined) assertMayIssue(issuer, certificate, index)
  }
  const [root] = await inOrder([
    findRoot(reader, chain.at(-1), roots),
    ...chain.slice(0, -1).map((certificate, index) => assertSigned(reader, certificate, chain[index + 1])),
  ])
  return root as TrustedRoot
}

/** RFC 5280 §6.1.3–§6.1.4: names chain, the issuer is a CA allowed to sign certificates, and the path is short enough. */
function assertMayIssue(issuer: Certificate, certificate: Certificate, certificatesBelow: number) {
  if (!equalBytes(certificate.issuer, issuer.subject)) {
    throw invalidChain(`${certificate.commonName} names another issuer than ${issuer.commonName}`)
  }
  if (!issuer.isCa) throw invalidChain(`${issuer.commonName} is not a certificate authority`)
  if (issuer.keyUsage?.certSign !== true) throw invalidChain(`${issuer.commonName} may not sign certificates`)
  if (issuer.pathLength !== undefined && issuer.pathLength < certificatesBelow) {
    throw invalidChain(`the path below ${issuer.commonName} is too long`)
  }
}

async function assertSigned(reader: CertificateReader, certificate: Certificate, issuer: Certificate | undefined) {
  if (issuer !== undefined && (await reader.isSignedBy(certificate, issuer))) return
  throw invalidChain(`${certificate.commonName} is not signed by ${issuer?.commonName}`)
}

/** The pinned root with this certificate. */
export async function findRoot(
  reader: CertificateReader,
  certificate: Certificate | undefined,
  roots: readonly TrustedRoot[],
): Promise<TrustedRoot> {
  if (certificate === undefined) throw invalidChain('no certificates')
  const fingerprint = await reader.fingerprintOf(certificate)
  const root = roots.find(({ certificateSha256 }) => certificateSha256 === fingerprint)
  if (root === undefined || root.publicKey !== toHex(certificate.publicKey.spki)) {
    throw new QuoteError('root_not_trusted', 'the chain does not end in a trusted root', { details: fingerprint })
  }
  return root
}

/** Verifies that `issuer` signed a revocation list, and that it is in date. Returns when it is valid. */
export async function verifyCrl(
  reader: CertificateReader,
  { crl, issuer, at }: { crl: Crl; issuer: Certificate; at: number },
): Promise<ValidityWindow> {
  if (!issuer.isCa) throw invalidChain(`${issuer.commonName} is not a certificate authority`)
  if (!equalBytes(crl.issuer, issuer.subject) || issuer.keyUsage?.crlSign !== true) {
    throw new QuoteError('crl_signature_invalid', 'revocation list of another issuer', { details: issuer.commonName })
  }
  const window = toCrlWindow(crl)
  if (!isWithin(window, at)) {
    const details = issuer.commonName
    throw at < window.notBefore
      ? new QuoteError('crl_not_yet_valid', 'revocation list not yet valid', { details })
      : new QuoteError('crl_expired', 'revocation list out of date', { details })
  }
  if (!(await reader.isSignedBy(crl, issuer))) {
    throw new QuoteError('crl_signature_invalid', 'revocation list signature invalid', { details: issuer.commonName })
  }
  return window
}

/** When a list is valid. A list without `nextUpdate` could hide every later revocation. */
export function toCrlWindow({ thisUpdate, nextUpdate }: Crl): ValidityWindow {
  if (nextUpdate === undefined) {
    throw new QuoteError('crl_without_next_update', 'the revocation list has no nextUpdate')
  }
  return { notBefore: thisUpdate, notAfter: nextUpdate }
}

/** Throws if a list has the serial number of a certificate. */
export function assertNotRevoked(certificate: Pick<Certificate, 'serial' | 'commonName'>, crl: Crl) {
  if (!crl.revoked.has(certificate.serial)) return
  throw new QuoteError('certificate_revoked', 'certificate revoked', { details: certificate.commonName })
}

function invalidChain(details: string) {
  return new QuoteError('certificate_chain_invalid', 'certificate chain invalid', { details })
}
