import { toHex } from '@countersign/protocol/core'
import type { Collateral } from '../tdx/collateral.ts'
import { encodeCrl, toPem, toSerial } from '../x509/encodeCertificate.ts'
import { FMSPC, type IntelPki, intelName, OTHER_FMSPC, OTHER_PCE_ID, PCE_ID } from './intelPki.ts'
import { derive, type EcKey } from './keys.ts'
import {
  moduleLevels,
  type PartLevel,
  type PlatformLevel,
  platformLevels,
  qeLevels,
  type SimulatedTcbStatus,
  sgxComponents,
  tdxComponents,
} from './tcbLevels.ts'
import { QE_MRSIGNER, QE_PRODUCT_ID } from './tdxQuote.ts'

/** Each adds one fault to genuine collateral. Signatures are correct unless a fault says otherwise. */
export type SimulatedCollateralFaults = {
  /** The PCK CRL lists the PCK certificates of every status. */
  pckRevoked?: boolean
  /** The root CRL lists the PCK CA. */
  pckCaRevoked?: boolean
  /** The root CRL lists the TCB signing certificate. */
  tcbSigningRevoked?: boolean
  pckCrlExpired?: boolean
  pckCrlNotYetValid?: boolean
  pckCrlWrongSigner?: boolean
  /** The empty string. */
  pckCrlEmpty?: boolean
  /** The root CRL replaces it. */
  pckCrlOtherIssuer?: boolean
  /** List and issuer chain come from the PKI of another seed. */
  pckCrlForeignChain?: boolean
  /** The PCK CA in the list's issuer chain lacks the CA flag. */
  pckCrlIssuerNotCa?: boolean
  rootCrlExpired?: boolean
  rootCrlNotYetValid?: boolean
  rootCrlWrongSigner?: boolean
  /** The empty string. */
  rootCrlEmpty?: boolean
  /** The PCK CRL replaces it. */
  rootCrlOtherIssuer?: boolean
  /** One number changed after signing. */
  tcbInfoTampered?: boolean
  tcbInfoWrongSigner?: boolean
  /** Signed by the PCK CA, with the PCK CA's certificate as its issuer chain. */
  tcbInfoSignedByPckCa?: boolean
  /** TCB info, signature and issuer chain come from the PKI of another seed. */
  tcbInfoForeignChain?: boolean
  tcbInfoExpired?: boolean
  tcbInfoNotYetValid?: boolean
  /** `id` is SGX. */
  tcbInfoForSgx?: boolean
  tcbInfoVersion2?: boolean
  tcbInfoOtherFmspc?: boolean
  tcbInfoOtherPceId?: boolean
  tcbInfoWithoutModuleIdentities?: boolean
  /** No `nextUpdate`. */
  tcbInfoMissingMember?: boolean
  /** The status of the first level is not one of Intel's. */
  tcbInfoUnknownStatus?: boolean
  /** One number changed after signing. */
  qeIdentityTampered?: boolean
  qeIdentityWrongSigner?: boolean
  /** QE identity, signature and issuer chain come from the PKI of another seed. */
  qeIdentityForeignChain?: boolean
  qeIdentityExpired?: boolean
  qeIdentityNotYetValid?: boolean
  /** `id` is QE. */
  qeIdentityForSgx?: boolean
  qeIdentityVersion1?: boolean
  /** The TCB signing certificate of both issuer chains has the name of another end entity. */
  tcbSigningWrongName?: boolean
  tcbSigningExpired?: boolean
}

export type SimulatedCollateralOptions = {
  /** When it is fresh. Default: the simulator's time. */
  at?: Date
  /** Of the TCB info and the QE identity; 20 by default. */
  tcbEvaluationDataNumber?: number
  /** Changes the JSON text before it is signed. */
  editTcbInfo?: (text: string) => string
  /** Changes the JSON text before it is signed. */
  editQeIdentity?: (text: string) => string
  faults?: SimulatedCollateralFaults
}

export type CollateralDeps = { seed: string; pki: IntelPki; foreignPki: IntelPki; at: Date }

const DAY_MS = 24 * 60 * 60 * 1000

/** The collateral of the simulated platform. */
export function createCollateral(deps: CollateralDeps, options: SimulatedCollateralOptions = {}): Collateral {
  const { faults = {}, editTcbInfo = unchanged, editQeIdentity = unchanged } = options
  const issuedAt = startOfSecond((options.at ?? deps.at).getTime() - DAY_MS)

  const crlPki = faults.pckCrlForeignChain ? deps.foreignPki : deps.pki
  const rootCrl = toHex(createRootCrl(deps, issuedAt, faults))
  const pckCrl = toHex(createPckCrl({ ...deps, pki: crlPki }, issuedAt, faults))

  const tcbInfo = editTcbInfo(JSON.stringify(createTcbInfo(issuedAt, options)))
  const qeIdentity = editQeIdentity(JSON.stringify(createQeIdentity(issuedAt, options)))
  const tcbInfoIssuer = chooseTcbInfoIssuer(deps, faults)
  const qeIdentityPki = faults.qeIdentityForeignChain ? deps.foreignPki : deps.pki
  const qeIdentityKey = faults.qeIdentityWrongSigner ? qeIdentityPki.strayKey() : qeIdentityPki.tcbSigningKey()

  return {
    pck_crl_issuer_chain: toPem(crlPki.pckCa({ isCa: !faults.pckCrlIssuerNotCa }), crlPki.root()),
    root_ca_crl: faults.rootCrlEmpty ? '' : faults.rootCrlOtherIssuer ? pckCrl : rootCrl,
    pck_crl: faults.pckCrlEmpty ? '' : faults.pckCrlOtherIssuer ? rootCrl : pckCrl,
    tcb_info_issuer_chain: tcbInfoIssuer.chain,
    tcb_info: faults.tcbInfoTampered ? tcbInfo.replace('"svn":9', '"svn":1') : tcbInfo,
    tcb_info_signature: signText(tcbInfoIssuer.key, tcbInfo),
    qe_identity_issuer_chain: toPem(tcbSigningOf(qeIdentityPki, faults), qeIdentityPki.root()),
    qe_identity: faults.qeIdentityTampered ? qeIdentity.replace('"isvsvn":6', '"isvsvn":1') : qeIdentity,
    qe_identity_signature: signText(qeIdentityKey, qeIdentity),
  }
}

function chooseTcbInfoIssuer({ pki, foreignPki }: CollateralDeps, faults: SimulatedCollateralFaults) {
  if (faults.tcbInfoSignedByPckCa) return { key: pki.pckCaKey(), chain: toPem(pki.pckCa(), pki.root()) }
  const issuer = faults.tcbInfoForeignChain ? foreignPki : pki
  return {
    key: faults.tcbInfoWrongSigner ? issuer.strayKey() : issuer.tcbSigningKey(),
    chain: toPem(tcbSigningOf(issuer, faults), issuer.root()),
  }
}

function tcbSigningOf(pki: IntelPki, faults: SimulatedCollateralFaults): Uint8Array {
  return pki.tcbSigning({
    ...(faults.tcbSigningWrongName ? { commonName: 'Intel SGX PCK Certificate' } : {}),
    ...(faults.tcbSigningExpired ? { validity: 'past' } : {}),
  })
}

/** r ‖ s in hex, over the exact text. */
function signText(key: EcKey, text: string): string {
  return toHex(key.signRaw(new TextEncoder().encode(text)))
}

/** Valid for a year. */
function createRootCrl({ pki }: CollateralDeps, issuedAt: Date, faults: SimulatedCollateralFaults): Uint8Array {
  return encodeCrl(
    {
      issuer: intelName('Intel SGX Root CA'),
      ...crlDates(issuedAt, 365, { isExpired: faults.rootCrlExpired, isNotYetValid: faults.rootCrlNotYetValid }),
      revoked: [
        ...(faults.pckCaRevoked ? [pki.pckCaSerial()] : []),
        ...(faults.tcbSigningRevoked ? [pki.tcbSigningSerial()] : []),
      ],
    },
    faults.rootCrlWrongSigner ? withIssuerOf(pki.strayKey(), pki.rootKey()) : pki.rootKey(),
  )
}

/** Valid for 30 days. It always lists a certificate that the simulator never uses, so it is never empty. */
function createPckCrl({ seed, pki }: CollateralDeps, issuedAt: Date, faults: SimulatedCollateralFaults): Uint8Array {
  const unrelated = toSerial(derive(seed, 'revoked pck serial', 20))
  return encodeCrl(
    {
      issuer: intelName('Intel SGX PCK Platform CA'),
      ...crlDates(issuedAt, 30, { isExpired: faults.pckCrlExpired, isNotYetValid: faults.pckCrlNotYetValid }),
      revoked: [unrelated, ...(faults.pckRevoked ? everyStatus.map((status) => pki.pckSerial(status)) : [])],
    },
    faults.pckCrlWrongSigner ? withIssuerOf(pki.strayKey(), pki.pckCaKey()) : pki.pckCaKey(),
  )
}

/** Signs with one key under the key identifier of another: only a check of the signature fails. */
function withIssuerOf(signer: EcKey, owner: EcKey): EcKey {
  return { ...signer, publicKey: owner.publicKey }
}

const everyStatus: readonly SimulatedTcbStatus[] = [
  ...platformLevels.map(({ status }) => status),
  'TDRelaunchAdvised',
  'TDRelaunchAdvisedConfigurationNeeded',
  'NotSupported',
]

type DateFaults = { isExpired?: boolean | undefined; isNotYetValid?: boolean | undefined }

/** From a day before the simulator's time, for `days`. A fault moves both ends. */
function crlDates(issuedAt: Date, days: number, { isExpired, isNotYetValid }: DateFaults) {
  // It ends half a day before the simulator's time, or begins two days after.
  const thisUpdate = issuedAt.getTime() + (isExpired ? 0.5 - days : isNotYetValid ? 3 : 0) * DAY_MS
  return { thisUpdate: startOfSecond(thisUpdate), nextUpdate: startOfSecond(thisUpdate + days * DAY_MS) }
}

function jsonDates(issuedAt: Date, faults: DateFaults) {
  const { thisUpdate, nextUpdate } = crlDates(issuedAt, 30, faults)
  return { issueDate: toJsonTime(thisUpdate), nextUpdate: toJsonTime(nextUpdate) }
}

function toJsonTime(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}

function startOfSecond(milliseconds: number): Date {
  return new Date(Math.floor(milliseconds / 1000) * 1000)
}

/** Intel's TCB info V3 for TDX, with its members in the order of Intel's PCS. */
function createTcbInfo(issuedAt: Date, options: SimulatedCollateralOptions) {
  const { faults = {}, tcbEvaluationDataNumber = 20 } = options
  const { issueDate, nextUpdate } = jsonDates(issuedAt, {
    isExpired: faults.tcbInfoExpired,
    isNotYetValid: faults.tcbInfoNotYetValid,
  })
  const module = {
    mrsigner: '0'.repeat(96),
    attributes: '0'.repeat(16),
    attributesMask: 'F'.repeat(16),
  }
  const identities = ['TDX_03', 'TDX_01'].map((id) => ({ id, ...module, tcbLevels: moduleLevels.map(encodePartLevel) }))
  const levels = platformLevels.map(encodePlatformLevel)
  return {
    id: faults.tcbInfoForSgx ? 'SGX' : 'TDX',
    version: faults.tcbInfoVersion2 ? 2 : 3,
    issueDate,
    ...(faults.tcbInfoMissingMember ? {} : { nextUpdate }),
    fmspc: (faults.tcbInfoOtherFmspc ? OTHER_FMSPC : FMSPC).toUpperCase(),
    pceId: faults.tcbInfoOtherPceId ? OTHER_PCE_ID : PCE_ID,
    tcbType: 0,
    tcbEvaluationDataNumber,
    tdxModule: module,
    ...(faults.tcbInfoWithoutModuleIdentities ? {} : { tdxModuleIdentities: identities }),
    tcbLevels: faults.tcbInfoUnknownStatus
      ? levels.map((level, index) => (index === 0 ? { ...level, tcbStatus: 'Excellent' } : level))
      : levels,
  }
}

/** Intel's enclave identity V2 of the TD quoting enclave. */
function createQeIdentity(issuedAt: Date, options: SimulatedCollateralOptions) {
  const { faults = {}, tcbEvaluationDataNumber = 20 } = options
  return {
    id: faults.qeIdentityForSgx ? 'QE' : 'TD_QE',
    version: faults.qeIdentityVersion1 ? 1 : 2,
    ...jsonDates(issuedAt, { isExpired: faults.qeIdentityExpired, isNotYetValid: faults.qeIdentityNotYetValid }),
    tcbEvaluationDataNumber,
    miscselect: '00000000',
    miscselectMask: 'FFFFFFFF',
    attributes: '11000000000000000000000000000000',
    attributesMask: 'FBFFFFFFFFFFFFFF0000000000000000',
    mrsigner: QE_MRSIGNER.toUpperCase(),
    isvprodid: QE_PRODUCT_ID,
    tcbLevels: qeLevels.map(encodePartLevel),
  }
}

function encodePlatformLevel(level: PlatformLevel) {
  const sgx = sgxComponents(level.svn).map((svn, index) => ({ svn, ...sgxComponentKinds[index] }))
  const tdx = tdxComponents(level).map((svn, index) => ({ svn, ...tdxComponentKinds[index] }))
  return {
    tcb: { sgxtcbcomponents: sgx, pcesvn: level.pceSvn, tdxtcbcomponents: tdx },
    tcbDate: level.date,
    tcbStatus: level.status,
    ...advisoriesOf(level),
  }
}

function encodePartLevel(level: PartLevel) {
  return { tcb: { isvsvn: level.svn }, tcbDate: level.date, tcbStatus: level.status, ...advisoriesOf(level) }
}

/** Intel omits the member if there are no advisories. */
function advisoriesOf({ advisories }: { advisories: readonly string[] }) {
  return advisories.length === 0 ? {} : { advisoryIDs: advisories }
}

const sgxComponentKinds = [
  { category: 'BIOS', type: 'Early Microcode Update' },
  { category: 'OS/VMM', type: 'SGX Late Microcode Update' },
  { category: 'OS/VMM', type: 'TXT SINIT' },
  { category: 'BIOS' },
  { category: 'BIOS' },
  { category: 'BIOS' },
  {},
  { category: 'OS/VMM', type: 'SEAMLDR ACM' },
]

const tdxComponentKinds = [
  { category: 'OS/VMM', type: 'TDX Module' },
  { category: 'OS/VMM', type: 'TDX Module' },
  { category: 'OS/VMM', type: 'TDX Late Microcode Update' },
]

function unchanged(text: string): string {
  return text
}
