import { concatBytes, toHex } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import type { TrustedRoot } from '../roots.ts'
import type { SnpProduct } from '../snp/endorsementKey.ts'
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

/** Security patch levels of a chip. Only Turin has `fmc`. */
export type SnpTcb = { bootLoader: number; tee: number; snp: number; microcode: number; fmc?: number }

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
  /** Milan by default. */
  product?: SnpProduct
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
  ark: (product: SnpProduct) => Bytes
  /** Turin's has 8 bytes and zeros. */
  chipId: (product: SnpProduct) => Uint8Array
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

const TURIN_HWID_BYTES = 8

const arkValidity = validity('2018-10-22T17:23:05Z', '2049-10-22T17:23:05Z')
const askValidity = validity('2018-10-22T18:24:20Z', '2048-10-22T18:24:20Z')
const ekValidity = validity('2020-01-01T00:00:00Z', '2045-01-01T00:00:00Z')
const pastValidity = validity('2020-01-01T00:00:00Z', '2021-01-01T00:00:00Z')

/**
 * AMD's hierarchy for each product: ARK → ASK → VCEK, and ARK → ASVK → VLEK. The products share their RSA keys. Without `offsets`, it
 * searches for the primes of each RSA key.
 */
export function createAmdPki(seed: string, offsets?: AmdPrimeOffsets): AmdPki {
  const memo = createMemo()
  const rsaKey = (name: RsaKeyName) =>
    memo(name, () => createRsaKey(seed, rsaLabel(name), { offsets: offsets?.[name], trailerField: name !== 'asvk' }))
  const chipIdOf = (signingKey: SnpSigningKey, product: SnpProduct, chipId?: Uint8Array) =>
    signingKey === 'vlek' ? new Uint8Array() : (chipId ?? pki.chipId(product))

  const ark = (name: 'ark' | 'foreign', product: SnpProduct) =>
    memo(`${name} certificate ${product}`, () => {
      const key = rsaKey(name)
      return encodeCertificate(
        {
          serial: amdSerials.ark,
          issuer: amdName(`ARK-${product}`),
          subject: amdName(`ARK-${product}`),
          validity: arkValidity,
          publicKey: key.publicKey,
          extensions: [
            keyUsage('certificatesAndCrls'),
            subjectKeyIdentifier(key.publicKey),
            basicConstraints({ isCa: true }),
            crlDistributionPoint(`https://example.invalid/vcek/v1/${product}/crl`),
          ],
        },
        key,
      )
    })

  /** The ASK, or for VLEKs the ASVK. */
  const ask = ({ signingKey = 'vcek', product = 'Milan', faults = {} }: SimulatedCertificateOptions) => {
    const arkName = faults.foreignArk ? 'foreign' : 'ark'
    const id = [signingKey, product, arkName, faults.askNotCa, faults.askWrongIssuer]
    return memo(`ask certificate ${JSON.stringify(id)}`, () => {
      const isVlek = signingKey === 'vlek'
      const { publicKey } = rsaKey(isVlek ? 'asvk' : 'ask')
      const issuer = rsaKey(faults.askWrongIssuer ? 'foreign' : arkName)
      return encodeCertificate(
        {
          serial: isVlek ? amdSerials.asvk : amdSerials.ask,
          issuer: amdName(`ARK-${product}`),
          subject: amdName(isVlek ? `SEV-VLEK-${product}` : `SEV-${product}`),
          validity: askValidity,
          publicKey,
          extensions: [
            subjectKeyIdentifier(publicKey),
            authorityKeyIdentifier(rsaKey(arkName).publicKey),
            basicConstraints({ isCa: !faults.askNotCa, pathLength: 0 }),
            keyUsage('certificates'),
            crlDistributionPoint(`https://example.invalid/${signingKey}/v1/${product}/crl`),
          ],
        },
        issuer,
      )
    })
  }

  const ek = (options: SimulatedCertificateOptions) => {
    const { signingKey = 'vcek', product = 'Milan', tcb = defaultTcb, chipId, faults = {} } = options
    const isVlek = signingKey === 'vlek'
    const issuer = rsaKey(faults.ekWrongIssuer ? 'foreign' : isVlek ? 'asvk' : 'ask')
    const subject = isVlek !== (faults.ekWrongName ?? false) ? 'SEV-VLEK' : 'SEV-VCEK'
    const chip = concatBytes(chipIdOf(signingKey, product, chipId))
    if (faults.otherChip) chip[0] = (chip[0] ?? 0) ^ 1
    return encodeCertificate(
      {
        serial: amdSerials.ek,
        issuer: amdName(isVlek ? `SEV-VLEK-${product}` : `SEV-${product}`),
        subject: amdName(subject),
        validity: faults.ekExpired ? pastValidity : ekValidity,
        publicKey: pki.ekKey({ signingKey, product, tcb, ...(chipId ? { chipId } : {}) }).publicKey,
        extensions: ekExtensions(faults.otherTcb ? { ...tcb, microcode: tcb.microcode ^ 1 } : tcb, {
          isVlek,
          product,
          chipId: chip,
        }),
      },
      issuer,
    )
  }

  const pki: AmdPki = {
    arkKey: () => rsaKey('ark'),
    foreignKey: () => rsaKey('foreign'),
    ark: (product) => ark('ark', product),
    chipId: (product) =>
      memo(`chip id ${product}`, () => {
        const id = derive(seed, 'amd chip id', 64)
        return product === 'Turin' ? id.fill(0, TURIN_HWID_BYTES) : id
      }),
    ekKey: ({ signingKey = 'vcek', product = 'Milan', tcb = defaultTcb, chipId }) => {
      const suffix = `${toHex(encodeTcb(tcb, product))} ${toHex(chipIdOf(signingKey, product, chipId))}`
      const label = `amd ${signingKey} ${product === 'Milan' ? '' : `${product} `}${suffix}`
      return memo(label, () => createP384Key(seed, label))
    },
    certificates: (options = {}) => {
      const { signingKey = 'vcek', product = 'Milan', tcb = defaultTcb, chipId, faults = {} } = options
      sized('chipId', chipId, 64)
      const id = [signingKey, product, toHex(encodeTcb(tcb, product)), chipId && toHex(chipId), faults]
      const chain = memo(`chain ${JSON.stringify(id)}`, () => ({
        ek: ek(options),
        ask: ask(options),
        ark: ark(faults.foreignArk ? 'foreign' : 'ark', product),
      }))
      return { ek: chain.ek.slice(), ask: chain.ask.slice(), ark: chain.ark.slice() }
    },
  }
  return pki
}

/** A simulated AMD root, as a verifier pins it. */
export function amdTrustedRoot(pki: AmdPki, product: SnpProduct = 'Milan'): TrustedRoot {
  return {
    vendor: 'amd',
    name: `ARK-${product}`,
    mode: 'mock',
    certificateSha256: toHex(sha256(pki.ark(product))),
    publicKey: toHex(pki.arkKey().publicKey),
  }
}

/** TCB_VERSION (SEV-SNP firmware ABI, 56860, §2.2; evidence.md, section 9.4). */
export function encodeTcb(
  { fmc = 0, bootLoader, tee, snp, microcode }: SnpTcb,
  product: SnpProduct = 'Milan',
): Uint8Array {
  if (product === 'Turin') return Uint8Array.of(fmc, bootLoader, tee, snp, 0, 0, 0, microcode)
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
function ekExtensions(
  tcb: SnpTcb,
  { isVlek, product, chipId }: { isVlek: boolean; product: SnpProduct; chipId: Uint8Array },
): Bytes[] {
  const amd = (suffix: string, value: Uint8Array) => extension(`1.3.6.1.4.1.3704.1.${suffix}`, value)
  const isTurin = product === 'Turin'
  return [
    amd('1', integer(isTurin ? 1 : 0)), // structure version
    amd('2', ia5String(isVlek ? product : `${product}-B0`)),
    amd('3.1', integer(tcb.bootLoader)),
    amd('3.2', integer(tcb.tee)),
    amd('3.4', integer(0)),
    amd('3.5', integer(0)),
    amd('3.6', integer(0)),
    amd('3.7', integer(0)),
    amd('3.3', integer(tcb.snp)),
    amd('3.8', integer(tcb.microcode)),
    ...(isTurin ? [amd('3.9', integer(tcb.fmc ?? 0))] : []),
    // The HWID is raw in the extension's OCTET STRING.
    isVlek
      ? amd('5', ia5String('CN=csp.example.invalid'))
      : amd('4', isTurin ? chipId.subarray(0, TURIN_HWID_BYTES) : chipId),
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
