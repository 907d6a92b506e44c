import { fromHex, toHex } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import type { TrustedRoot } from '../roots.ts'
import {
  authorityKeyIdentifier,
  basicConstraints,
  crlDistributionPoint,
  encodeCertificate,
  extension,
  keyIdentifier,
  keyUsage,
  type Name,
  subjectKeyIdentifier,
  toSerial,
  type Validity,
} from '../x509/encodeCertificate.ts'
import { type Bytes, boolean, enumerated, integer, objectIdentifier, octetString, sequence } from '../x509/encodeDer.ts'
import { createMemo, createP256Key, derive, type EcKey } from './keys.ts'
import { platformSvns, type SimulatedTcbStatus, sgxComponents } from './tcbLevels.ts'

/** The FMSPC of the simulated platform, in hex as `PCE_ID`. */
export const FMSPC = 'f0c06f000000'
export const OTHER_FMSPC = 'f1c06f000000'
export const PCE_ID = '0000'
export const OTHER_PCE_ID = '0001'

const ROOT_CRL_URI = 'https://example.invalid/IntelSGXRootCA.der'
const PCK_CRL_URI = 'https://example.invalid/sgx/certification/v4/pckcrl?ca=platform&encoding=der'

// Independent of the simulator's time, so that a seed has one root and a platform one certificate.
const rootValidity = validity('2018-05-21T10:45:10Z', '2049-12-31T23:59:59Z')
const issuerValidity = validity('2018-05-21T10:50:10Z', '2048-05-21T10:50:10Z')
const pckValidity = validity('2020-01-01T00:00:00Z', '2045-01-01T00:00:00Z')
const pastValidity = validity('2020-01-01T00:00:00Z', '2021-01-01T00:00:00Z')
const futureValidity = validity('2044-01-01T00:00:00Z', '2045-01-01T00:00:00Z')

export type PckOptions = {
  status?: SimulatedTcbStatus
  fmspc?: string
  pceId?: string
  commonName?: string
  validity?: 'normal' | 'past' | 'future'
}

type TcbSigningOptions = { commonName?: string; validity?: 'normal' | 'past' }

/** Intel's hierarchy: the root issues the PCK CA and the TCB signing certificate, the PCK CA one PCK per platform state. */
export type IntelPki = {
  rootKey: () => EcKey
  pckCaKey: () => EcKey
  tcbSigningKey: () => EcKey
  pckKey: (status?: SimulatedTcbStatus) => EcKey
  attestationKey: () => EcKey
  /** A key that has no certificate. */
  strayKey: () => EcKey
  root: () => Bytes
  pckCa: (options?: { isCa?: boolean }) => Bytes
  tcbSigning: (options?: TcbSigningOptions) => Bytes
  pck: (options?: PckOptions) => Bytes
  pckCaSerial: () => bigint
  tcbSigningSerial: () => bigint
  pckSerial: (status?: SimulatedTcbStatus) => bigint
}

export function createIntelPki(seed: string): IntelPki {
  const memo = createMemo()
  const key = (label: string) => memo(label, () => createP256Key(seed, `intel ${label}`))
  const serialOf = (owner: EcKey) => toSerial(keyIdentifier(owner.publicKey))

  const pki: IntelPki = {
    rootKey: () => key('root'),
    pckCaKey: () => key('pck ca'),
    tcbSigningKey: () => key('tcb signing'),
    pckKey: (status = 'UpToDate') => key(`pck ${status}`),
    attestationKey: () => key('attestation'),
    strayKey: () => key('stray'),
    pckCaSerial: () => serialOf(pki.pckCaKey()),
    tcbSigningSerial: () => serialOf(pki.tcbSigningKey()),
    pckSerial: (status) => serialOf(pki.pckKey(status)),

    root: () =>
      memo('root certificate', () =>
        issue(pki.rootKey(), pki.rootKey(), {
          issuer: intelName('Intel SGX Root CA'),
          subject: intelName('Intel SGX Root CA'),
          validity: rootValidity,
          crlUri: ROOT_CRL_URI,
          constraints: [keyUsage('certificatesAndCrls'), basicConstraints({ isCa: true, pathLength: 1 })],
        }),
      ),

    pckCa: ({ isCa = true } = {}) =>
      memo(`pck ca certificate ${isCa}`, () =>
        issue(pki.pckCaKey(), pki.rootKey(), {
          issuer: intelName('Intel SGX Root CA'),
          subject: intelName('Intel SGX PCK Platform CA'),
          validity: issuerValidity,
          crlUri: ROOT_CRL_URI,
          constraints: [keyUsage('certificatesAndCrls'), basicConstraints({ isCa, pathLength: 0 })],
        }),
      ),

    tcbSigning: ({ commonName = 'Intel SGX TCB Signing', validity = 'normal' } = {}) =>
      memo(`tcb signing certificate ${commonName} ${validity}`, () =>
        issue(pki.tcbSigningKey(), pki.rootKey(), {
          issuer: intelName('Intel SGX Root CA'),
          subject: intelName(commonName),
          validity: validity === 'past' ? pastValidity : issuerValidity,
          crlUri: ROOT_CRL_URI,
          constraints: [keyUsage('signature'), basicConstraints({ isCa: false })],
        }),
      ),

    pck: (options = {}) =>
      memo(`pck certificate ${JSON.stringify(options)}`, () => {
        const { status = 'UpToDate', commonName = 'Intel SGX PCK Certificate', validity = 'normal' } = options
        return issue(pki.pckKey(status), pki.pckCaKey(), {
          issuer: intelName('Intel SGX PCK Platform CA'),
          subject: intelName(commonName),
          validity: { normal: pckValidity, past: pastValidity, future: futureValidity }[validity],
          crlUri: PCK_CRL_URI,
          constraints: [
            keyUsage('signature'),
            basicConstraints({ isCa: false }),
            extension(
              SGX_EXTENSIONS,
              encodeSgxExtensions({
                ...platformSvns(status),
                ppid: derive(seed, 'ppid', 16),
                platformInstanceId: derive(seed, 'platform instance id', 16),
                fmspc: fromHex(options.fmspc ?? FMSPC),
                pceId: fromHex(options.pceId ?? PCE_ID),
              }),
            ),
          ],
        })
      }),
  }
  return pki
}

/** The simulated Intel root, as a verifier pins it. */
export function intelTrustedRoot(pki: IntelPki): TrustedRoot {
  return {
    vendor: 'intel',
    name: 'Intel SGX Root CA',
    mode: 'mock',
    certificateSha256: toHex(sha256(pki.root())),
    publicKey: toHex(pki.rootKey().publicKey),
  }
}

/** The order of attributes in Intel's names. */
export function intelName(commonName: string): Name {
  return [
    ['commonName', commonName],
    ['organizationName', 'MOCK DEVELOPMENT ONLY - NOT INTEL'],
    ['localityName', 'Santa Clara'],
    ['stateOrProvinceName', 'CA'],
    ['countryName', 'US'],
  ]
}

type IssueFields = {
  issuer: Name
  subject: Name
  validity: Validity
  crlUri: string
  /** The extensions after the subject key identifier. */
  constraints: readonly Uint8Array[]
}

/** A certificate with Intel's extensions in Intel's order. Its serial number is its key identifier, as with Intel's CAs. */
function issue(subjectKey: EcKey, issuerKey: EcKey, fields: IssueFields): Bytes {
  return encodeCertificate(
    {
      serial: toSerial(keyIdentifier(subjectKey.publicKey)),
      issuer: fields.issuer,
      subject: fields.subject,
      validity: fields.validity,
      publicKey: subjectKey.publicKey,
      extensions: [
        authorityKeyIdentifier(issuerKey.publicKey),
        crlDistributionPoint(fields.crlUri),
        subjectKeyIdentifier(subjectKey.publicKey),
        ...fields.constraints,
      ],
    },
    issuerKey,
  )
}

const SGX_EXTENSIONS = '1.2.840.113741.1.13.1'

type SgxExtensions = {
  ppid: Uint8Array
  svn: number
  pceSvn: number
  pceId: Uint8Array
  fmspc: Uint8Array
  platformInstanceId: Uint8Array
}

/** Intel SGX PCK Certificate and Certificate Revocation List Profile Specification, for a platform CA. */
function encodeSgxExtensions(fields: SgxExtensions): Bytes {
  const member = (suffix: string, value: Uint8Array) => sequence(objectIdentifier(`${SGX_EXTENSIONS}.${suffix}`), value)
  const components = sgxComponents(fields.svn)
  const tcb = sequence(
    ...components.map((svn, index) => member(`2.${index + 1}`, integer(svn))),
    member('2.17', integer(fields.pceSvn)),
    member('2.18', octetString(Uint8Array.from(components))),
  )
  const configuration = sequence(
    member('7.1', boolean(true)), // dynamic platform
    member('7.2', boolean(true)), // cached keys
    member('7.3', boolean(true)), // SMT enabled
  )
  return sequence(
    member('1', octetString(fields.ppid)),
    member('2', tcb),
    member('3', octetString(fields.pceId)),
    member('4', octetString(fields.fmspc)),
    member('5', enumerated(1)), // SGX type: scalable
    member('6', octetString(fields.platformInstanceId)),
    member('7', configuration),
  )
}

function validity(notBefore: string, notAfter: string): Validity {
  return { notBefore: new Date(notBefore), notAfter: new Date(notAfter) }
}
