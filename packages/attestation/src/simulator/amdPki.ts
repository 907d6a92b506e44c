import { concatBytes, toHex } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import type { TrustedRoot } from '../roots.ts'
import {
  authorityKeyIdentifier,
  basicConstraints,
  crlDistributionPoint,
  encodeCertificate,
  encodeCrl,
  extension,
  type IssuerKey,
  keyUsage,
  type Name,
  subjectKeyIdentifier,
  type Validity,
} from '../x509/encodeCertificate.ts'
import { type Bytes, ia5String, integer } from '../x509/encodeDer.ts'
import { createMemo, createP384Key, derive, developmentSeed, type EcKey, sized, strangerSeed } from './keys.ts'
import { createRsaKey, type PrimeOffsets } from './rsa.ts'

/** Security patch levels of a Milan chip. */
export type SnpTcb = { bootLoader: number; tee: number; snp: number; microcode: number }

/** The key that signs a report: the chip's own, or one that AMD issues to a cloud provider. */
export type SnpSigningKey = 'vcek' | 'vlek'

export const defaultTcb: SnpTcb = { bootLoader: 4, tee: 0, snp: 24, microcode: 219 }

/** Each adds one fault to a genuine chain. */
export type SimulatedCertificateFaults = {
  /** The certificate states another TCB than that of its key. */
  otherTcb?: boolean
  /** The certificate states another HWID than that of its key's chip. */
  otherChip?: boolean
  ekExpired?: boolean
  /** Another key than the ASK signs the VCEK or VLEK. */
  ekWrongIssuer?: boolean
  ekWrongName?: boolean
  askNotCa?: boolean
  askWrongIssuer?: boolean
  /** ARK and ASK have the right names, but another root key. */
  foreignArk?: boolean
}

export type SimulatedCertificateOptions = {
  signingKey?: SnpSigningKey
  /** The report's REPORTED_TCB. */
  tcb?: SnpTcb
  /** 64 bytes. */
  chipId?: Uint8Array
  faults?: SimulatedCertificateFaults
}

/** DER. `ek` is the VCEK or VLEK, `ask` the ASK or ASVK. */
export type SimulatedCertificates = { ek: Uint8Array; ask: Uint8Array; ark: Uint8Array }

export type AmdPki = {
  arkKey: () => IssuerKey
  /** A root key that is not pinned. */
  foreignKey: () => IssuerKey
  ark: () => Bytes
  chipId: () => Uint8Array
  /** As in a real chip, another TCB is another key. */
  ekKey: (options: Omit<SimulatedCertificateOptions, 'faults'>) => EcKey
  certificates: (options?: SimulatedCertificateOptions) => SimulatedCertificates
}

export type RsaKeyName = 'ark' | 'ask' | 'asvk' | 'foreign'

/** The primes of a seed's RSA keys, found by an earlier search. */
export type AmdPrimeOffsets = Readonly<Record<RsaKeyName, PrimeOffsets>>

/** The label under which a key's primes are derived. */
export function rsaLabel(name: RsaKeyName): string {
  return `amd ${name}`
}

/** AMD's serial numbers. All endorsement keys have the same. */
const amdSerials = { ark: 0x010000n, ask: 0x010001n, asvk: 0x010101n, ek: 0n } as const

const arkValidity = validity('2018-10-22T17:23:05Z', '2049-10-22T17:23:05Z')
const askValidity = validity('2018-10-22T18:24:20Z', '2048-10-22T18:24:20Z')
const ekValidity = validity('2020-01-01T00:00:00Z', '2045-01-01T00:00:00Z')
const pastValidity = validity('2020-01-01T00:00:00Z', '2021-01-01T00:00:00Z')

/** AMD's hierarchy for Milan: ARK → ASK → VCEK, and ARK → ASVK → VLEK. Without `offsets`, it searches for the primes of each RSA key. */
export function createAmdPki(seed: string, offsets?: AmdPrimeOffsets): AmdPki {
  const memo = createMemo()
  const rsaKey = (name: RsaKeyName) =>
    memo(name, () => createRsaKey(seed, rsaLabel(name), { offsets: offsets?.[name], trailerField: name !== 'asvk' }))
  const chipIdOf = (signingKey: SnpSigningKey, chipId?: Uint8Array) =>
    signingKey === 'vlek' ? new Uint8Array() : (chipId ?? pki.chipId())

  const ark = (name: 'ark' | 'foreign') =>
    memo(`${name} certificate`, () => {
      const key = rsaKey(name)
      return encodeCertificate(
        {
          serial: amdSerials.ark,
          issuer: amdName('ARK-Milan'),
          subject: amdName('ARK-Milan'),
          validity: arkValidity,
          publicKey: key.publicKey,
          extensions: [
            keyUsage('certificatesAndCrls'),
            subjectKeyIdentifier(key.publicKey),
            basicConstraints({ isCa: true }),
            crlDistributionPoint('https://example.invalid/vcek/v1/Milan/crl'),
          ],
        },
        key,
      )
    })

  /** The ASK, or for VLEKs the ASVK. */
  const ask = (signingKey: SnpSigningKey, arkName: 'ark' | 'foreign', faults: SimulatedCertificateFaults) =>
    memo(`ask certificate ${JSON.stringify([signingKey, arkName, faults.askNotCa, faults.askWrongIssuer])}`, () => {
      const isVlek = signingKey === 'vlek'
      const { publicKey } = rsaKey(isVlek ? 'asvk' : 'ask')
      const issuer = rsaKey(faults.askWrongIssuer ? 'foreign' : arkName)
      return encodeCertificate(
        {
          serial: isVlek ? amdSerials.asvk : amdSerials.ask,
          issuer: amdName('ARK-Milan'),
          subject: amdName(isVlek ? 'SEV-VLEK-Milan' : 'SEV-Milan'),
          validity: askValidity,
          publicKey,
          extensions: [
            subjectKeyIdentifier(publicKey),
            authorityKeyIdentifier(rsaKey(arkName).publicKey),
            basicConstraints({ isCa: !faults.askNotCa, pathLength: 0 }),
            keyUsage('certificates'),
            crlDistributionPoint(`https://example.invalid/${signingKey}/v1/Milan/crl`),
          ],
        },
        issuer,
      )
    })

  const ek = ({ signingKey = 'vcek', tcb = defaultTcb, chipId, faults = {} }: SimulatedCertificateOptions) => {
    const isVlek = signingKey === 'vlek'
    const issuer = rsaKey(faults.ekWrongIssuer ? 'foreign' : isVlek ? 'asvk' : 'ask')
    const subject = isVlek !== (faults.ekWrongName ?? false) ? 'SEV-VLEK' : 'SEV-VCEK'
    const chip = concatBytes(chipIdOf(signingKey, chipId))
    if (faults.otherChip) chip[0] = (chip[0] ?? 0) ^ 1
    return encodeCertificate(
      {
        serial: amdSerials.ek,
        issuer: amdName(isVlek ? 'SEV-VLEK-Milan' : 'SEV-Milan'),
        subject: amdName(subject),
        validity: faults.ekExpired ? pastValidity : ekValidity,
        publicKey: pki.ekKey({ signingKey, tcb, ...(chipId ? { chipId } : {}) }).publicKey,
        extensions: ekExtensions(faults.otherTcb ? { ...tcb, microcode: tcb.microcode ^ 1 } : tcb, isVlek, chip),
      },
      issuer,
    )
  }

  const pki: AmdPki = {
    arkKey: () => rsaKey('ark'),
    foreignKey: () => rsaKey('foreign'),
    ark: () => ark('ark'),
    chipId: () => memo('chip id', () => derive(seed, 'amd chip id', 64)),
    ekKey: ({ signingKey = 'vcek', tcb = defaultTcb, chipId }) => {
      const label = `amd ${signingKey} ${toHex(encodeTcb(tcb))} ${toHex(chipIdOf(signingKey, chipId))}`
      return memo(label, () => createP384Key(seed, label))
    },
    certificates: (options = {}) => {
      const { signingKey = 'vcek', tcb = defaultTcb, chipId, faults = {} } = options
      sized('chipId', chipId, 64)
      const arkName = faults.foreignArk ? 'foreign' : 'ark'
      const key = `chain ${JSON.stringify([signingKey, toHex(encodeTcb(tcb)), chipId && toHex(chipId), faults])}`
      const chain = memo(key, () => ({ ek: ek(options), ask: ask(signingKey, arkName, faults), ark: ark(arkName) }))
      return { ek: chain.ek.slice(), ask: chain.ask.slice(), ark: chain.ark.slice() }
    },
  }
  return pki
}

/** The simulated AMD root, as a verifier pins it. */
export function amdTrustedRoot(pki: AmdPki): TrustedRoot {
  return {
    vendor: 'amd',
    name: 'ARK-Milan',
    mode: 'mock',
    certificateSha256: toHex(sha256(pki.ark())),
    publicKey: toHex(pki.arkKey().publicKey),
  }
}

/** TCB_VERSION of Milan and Genoa (SEV-SNP firmware ABI, 56860, §2.2): boot loader, TEE, four reserved bytes, SNP, microcode. */
export function encodeTcb({ bootLoader, tee, snp, microcode }: SnpTcb): Uint8Array {
  return Uint8Array.of(bootLoader, tee, 0, 0, 0, 0, snp, microcode)
}

/** The order of attributes in AMD's names. */
function amdName(commonName: string): Name {
  return [
    ['organizationalUnitName', 'Engineering'],
    ['countryName', 'US'],
    ['localityName', 'Santa Clara'],
    ['stateOrProvinceName', 'CA'],
    ['organizationName', 'MOCK DEVELOPMENT ONLY - NOT AMD'],
    ['commonName', commonName],
  ]
}

/** AMD, "VCEK Certificate and KDS Interface Specification" (57230), in the order of real certificates. */
function ekExtensions(tcb: SnpTcb, isVlek: boolean, chipId: Uint8Array): Bytes[] {
  const amd = (suffix: string, value: Uint8Array) => extension(`1.3.6.1.4.1.3704.1.${suffix}`, value)
  return [
    amd('1', integer(0)), // structure version
    amd('2', ia5String(isVlek ? 'Milan' : 'Milan-B0')),
    amd('3.1', integer(tcb.bootLoader)),
    amd('3.2', integer(tcb.tee)),
    amd('3.4', integer(0)),
    amd('3.5', integer(0)),
    amd('3.6', integer(0)),
    amd('3.7', integer(0)),
    amd('3.3', integer(tcb.snp)),
    amd('3.8', integer(tcb.microcode)),
    // The HWID is raw in the extension's OCTET STRING.
    isVlek ? amd('5', ia5String('CN=csp.example.invalid')) : amd('4', chipId),
  ]
}

function validity(notBefore: string, notAfter: string): Validity {
  return { notBefore: new Date(notBefore), notAfter: new Date(notAfter) }
}

/** Each adds one fault to a genuine revocation list. */
export type SimulatedRevocationFaults = {
  expired?: boolean
  notYetValid?: boolean
  noNextUpdate?: boolean
  /** Another key than the root's signs it, under the root's name. */
  wrongSigner?: boolean
  /** The list of another product, under its name and by its root's key. */
  otherProduct?: boolean
}

export type SimulatedRevocationOptions = {
  /** The listed certificates. Default: none. */
  revoked?: readonly (keyof typeof amdSerials)[]
  faults?: SimulatedRevocationFaults
}

const DAY_MS = 86_400_000

/** AMD's revocation list (57230), issued a day ago and valid for 30 days. */
export function createRevocations(
  { pki, at }: { pki: AmdPki; at: Date },
  { revoked = [], faults = {} }: SimulatedRevocationOptions = {},
): Uint8Array {
  const offsetDays = faults.expired ? -60 : faults.notYetValid ? 2 : -1
  const thisUpdate = at.getTime() + offsetDays * DAY_MS
  const key = faults.wrongSigner || faults.otherProduct ? pki.foreignKey() : pki.arkKey()
  return encodeCrl(
    {
      issuer: amdName(faults.otherProduct ? 'ARK-Genoa' : 'ARK-Milan'),
      thisUpdate: new Date(thisUpdate),
      nextUpdate: faults.noNextUpdate ? undefined : new Date(thisUpdate + 30 * DAY_MS),
      revoked: revoked.map((name) => amdSerials[name]),
    },
    key,
  )
}

/** Where `findPrimeOffsets` found the primes of these seeds; a test checks them again. */
export const primeOffsets: Readonly<Record<string, AmdPrimeOffsets>> = {
  [developmentSeed]: {
    ark: [1388, 130],
    ask: [704, 1358],
    asvk: [50, 114],
    foreign: [2660, 786],
  },
  [strangerSeed]: {
    ark: [2106, 1034],
    ask: [328, 28],
    asvk: [184, 1090],
    foreign: [774, 468],
  },
}
