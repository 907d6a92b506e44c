import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createVerifier } from '../createVerifier.ts'
import type { QuoteErrorCode } from '../errors.ts'
import { vendorRoots } from '../roots.ts'
import {
  createSimulator,
  type SimulatedCollateralFaults,
  type SimulatedCollateralOptions,
  type SimulatedQuoteFaults,
  type SimulatedQuoteOptions,
} from '../simulator/index.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const reportData = Uint8Array.from({ length: 64 }, (_, index) => 255 - index)

function verify(
  quoteOptions: Partial<SimulatedQuoteOptions> = {},
  collateralOptions: SimulatedCollateralOptions = {},
  roots = [simulator.intelRoot],
) {
  const quote = simulator.quote({ reportData, ...quoteOptions })
  return createVerifier({ roots }).verifyQuote({ quote, collateral: simulator.collateral(collateralOptions), at })
}

describe('a genuine quote', () => {
  test.each([
    ['version 4', { version: 4 }, 4, 'td10'],
    ['version 5 with a TD 1.0 body', { version: 5, body: 'td10' }, 5, 'td10'],
    ['version 5 with a TD 1.5 body', { version: 5, body: 'td15' }, 5, 'td15'],
  ] as const)('%s is verified, and says what it measured', async (_, options, version, kind) => {
    const mrtd = new Uint8Array(48).fill(7)
    const verified = await verify({ ...options, mrtd })
    expect(verified).toMatchObject({ version, root: simulator.intelRoot, body: { kind } })
    expect(verified.body.mrTd).toEqual(mrtd)
    expect(verified.body.reportData).toEqual(reportData)
    expect(verified.tcb).toMatchObject({ status: 'UpToDate', advisoryIds: [], evaluationDataNumber: 20 })
    expect(verified.platform).toMatchObject({ fmspc: 'f0c06f000000', pceId: '0000' })
    expect(verified.flags).toMatchObject({ debug: false, septVeDisable: true, reservedBits: false, trailingBytes: 0 })
  })

  test('reports zero padding and other bytes after the quote', async () => {
    expect((await verify({ trailing: new Uint8Array(70) })).flags).toMatchObject({
      trailingBytes: 70,
      trailingZero: true,
    })
    expect((await verify({ trailing: new Uint8Array([0, 1]) })).flags).toMatchObject({
      trailingBytes: 2,
      trailingZero: false,
    })
  })

  test('the vendor roots do not verify simulated silicon', async () => {
    await expect(verify({}, {}, [...vendorRoots])).rejects.toMatchObject({ code: 'root_not_trusted' })
  })

  test('rejects the root of another seed', async () => {
    const other = createSimulator({ seed: 'another', at })
    await expect(verify({}, {}, [other.intelRoot])).rejects.toMatchObject({ code: 'root_not_trusted' })
  })

  test('rejects a root with the right hash and another key', async () => {
    const root = { ...simulator.intelRoot, publicKey: toHex(new Uint8Array(91)) }
    await expect(verify({}, {}, [root])).rejects.toMatchObject({ code: 'root_not_trusted' })
  })
})

const quoteFaults: Record<keyof SimulatedQuoteFaults, QuoteErrorCode> = {
  teeTypeSgx: 'quote_unsupported',
  wrongAttestationKeyType: 'quote_unsupported',
  wrongQeVendor: 'quote_unsupported',
  wrongOuterCertificationType: 'quote_unsupported',
  wrongInnerCertificationType: 'quote_unsupported',
  qeWrongMrSigner: 'qe_identity_mismatch',
  qeDebug: 'qe_identity_mismatch',
  qeWrongProductId: 'qe_identity_mismatch',
  qeWrongAttributes: 'qe_identity_mismatch',
  qeWrongMiscSelect: 'qe_identity_mismatch',
  qeReportDataUnbound: 'qe_report_data_mismatch',
  qeReportDataTail: 'qe_report_data_mismatch',
  qeReportWrongSigner: 'qe_report_signature_invalid',
  quoteWrongSigner: 'quote_signature_invalid',
  reportDataFlipped: 'quote_signature_invalid',
  moduleWrongMrSigner: 'tdx_module_mismatch',
  moduleAttributesSet: 'tdx_module_mismatch',
  pckCaNotCa: 'certificate_chain_invalid',
  pckForeignRoot: 'root_not_trusted',
  pckExpired: 'certificate_not_in_date',
  pckNotYetValid: 'certificate_not_in_date',
  pckOtherFmspc: 'tcb_info_mismatch',
  pckOtherPceId: 'tcb_info_mismatch',
  pckWrongName: 'certificate_chain_invalid',
  chainSwapped: 'certificate_chain_invalid',
  chainExtraCertificate: 'certificate_chain_invalid',
  chainWithoutRoot: 'certificate_chain_invalid',
}

test.each([
  ['TCB info', ['tcb_info', 'tcb_info_signature', 'tcb_info_issuer_chain']],
  ['a QE identity', ['qe_identity', 'qe_identity_signature', 'qe_identity_issuer_chain']],
] as const)('rejects %s under another trusted root than that of the quote', async (_, members) => {
  const other = createSimulator({ seed: 'another', at })
  const foreign = other.collateral()
  const collateral = { ...simulator.collateral() }
  for (const member of members) collateral[member] = foreign[member]
  const verifier = createVerifier({ roots: [simulator.intelRoot, other.intelRoot] })
  await expect(verifier.verifyQuote({ quote: simulator.quote({ reportData }), collateral, at })).rejects.toMatchObject({
    code: 'root_not_trusted',
  })
})

describe('a quote that is not genuine', () => {
  test.each(Object.entries(quoteFaults))('rejects %s with %s', async (fault, code) => {
    await expect(verify({ faults: { [fault]: true } })).rejects.toMatchObject({ name: 'QuoteError', code })
  })
})

const collateralFaults: Record<keyof SimulatedCollateralFaults, QuoteErrorCode> = {
  pckRevoked: 'certificate_revoked',
  pckCaRevoked: 'certificate_revoked',
  tcbSigningRevoked: 'certificate_revoked',
  pckCrlExpired: 'crl_expired',
  pckCrlNotYetValid: 'crl_not_yet_valid',
  pckCrlWrongSigner: 'crl_signature_invalid',
  pckCrlEmpty: 'crl_malformed',
  pckCrlOtherIssuer: 'crl_signature_invalid',
  pckCrlForeignChain: 'root_not_trusted',
  pckCrlIssuerNotCa: 'certificate_chain_invalid',
  rootCrlExpired: 'crl_expired',
  rootCrlNotYetValid: 'crl_not_yet_valid',
  rootCrlWrongSigner: 'crl_signature_invalid',
  rootCrlEmpty: 'crl_malformed',
  rootCrlOtherIssuer: 'crl_signature_invalid',
  tcbInfoTampered: 'tcb_info_signature_invalid',
  tcbInfoWrongSigner: 'tcb_info_signature_invalid',
  tcbInfoSignedByPckCa: 'certificate_chain_invalid',
  tcbInfoForeignChain: 'root_not_trusted',
  tcbInfoExpired: 'tcb_info_not_in_date',
  tcbInfoNotYetValid: 'tcb_info_not_in_date',
  tcbInfoForSgx: 'tcb_info_mismatch',
  tcbInfoVersion2: 'tcb_info_malformed',
  tcbInfoOtherFmspc: 'tcb_info_mismatch',
  tcbInfoOtherPceId: 'tcb_info_mismatch',
  tcbInfoWithoutModuleIdentities: 'tdx_module_mismatch',
  tcbInfoMissingMember: 'tcb_info_malformed',
  tcbInfoUnknownStatus: 'tcb_not_supported',
  qeIdentityTampered: 'qe_identity_signature_invalid',
  qeIdentityWrongSigner: 'qe_identity_signature_invalid',
  qeIdentityForeignChain: 'root_not_trusted',
  qeIdentityExpired: 'qe_identity_not_in_date',
  qeIdentityNotYetValid: 'qe_identity_not_in_date',
  qeIdentityForSgx: 'qe_identity_mismatch',
  qeIdentityVersion1: 'qe_identity_malformed',
  tcbSigningWrongName: 'certificate_chain_invalid',
  tcbSigningExpired: 'certificate_not_in_date',
}

describe('invalid collateral', () => {
  test.each(Object.entries(collateralFaults))('rejects %s with %s', async (fault, code) => {
    await expect(verify({}, { faults: { [fault]: true } })).rejects.toMatchObject({ name: 'QuoteError', code })
  })

  test.each([
    [
      'tcb_info_malformed',
      'two equal TCB levels',
      (text: string) => text.replace('"tcbLevels":[{"tcb":{"sgx', duplicateFirstLevel(text)),
    ],
    ['tcb_info_malformed', 'a component above 255', (text: string) => text.replace('{"svn":', '{"svn":256,"x":')],
    ['tcb_info_malformed', 'a fractional SVN', (text: string) => text.replace('{"svn":', '{"svn":0.5,"x":')],
    [
      'tcb_info_malformed',
      'a date without a time',
      (text: string) => text.replace(/"issueDate":"([\d-]+)T[^"]*"/, '"issueDate":"$1"'),
    ],
    ['tcb_info_malformed', 'a list where an object belongs', () => '[]'],
    ['tcb_info_malformed', 'no JSON', () => '{'],
    ['tcb_info_malformed', 'tcbType 1', (text: string) => text.replace('"tcbType":0', '"tcbType":1')],
    ['tcb_info_malformed', 'a short FMSPC', (text: string) => text.replace(/"fmspc":"../, '"fmspc":"')],
    [
      'tcb_info_malformed',
      'no TCB levels',
      (text: string) => text.replace(/"tcbLevels":\[\{"tcb":\{"sgx.*$/, '"tcbLevels":[]}'),
    ],
  ] as const)('%s: %s, though correctly signed', async (code, _, editTcbInfo) => {
    await expect(verify({}, { editTcbInfo })).rejects.toMatchObject({ code })
  })

  test.each([
    ['qe_identity_malformed', (text: string) => text.replace('"mrsigner":"', '"mrsigner":"00')],
    ['qe_identity_malformed', (text: string) => text.replace('"isvprodid":2', '"isvprodid":"2"')],
    ['qe_identity_malformed', (text: string) => text.replace(/"tcbLevels":\[.*\]/, '"tcbLevels":[]')],
  ] as const)('%s, though correctly signed', async (code, editQeIdentity) => {
    await expect(verify({}, { editQeIdentity })).rejects.toMatchObject({ code })
  })
})

/** The text from the start of the platform's TCB levels, with the first level standing twice. */
function duplicateFirstLevel(text: string): string {
  const levels = JSON.parse(text).tcbLevels as unknown[]
  return `"tcbLevels":[${JSON.stringify(levels[0])},{"tcb":{"sgx`
}

describe('QVL 4.1.2.4.17: the TCB status', () => {
  test.each([
    'UpToDate',
    'SWHardeningNeeded',
    'ConfigurationNeeded',
    'ConfigurationAndSWHardeningNeeded',
    'OutOfDate',
    'OutOfDateConfigurationNeeded',
    'TDRelaunchAdvised',
    'TDRelaunchAdvisedConfigurationNeeded',
  ] as const)('returns %s', async (status) => {
    expect((await verify({ status })).tcb.status).toBe(status)
  })

  test.each([
    [{ status: 'Revoked' }, 'tcb_revoked'],
    [{ qeStatus: 'Revoked' }, 'tcb_revoked'],
    [{ moduleStatus: 'Revoked' }, 'tcb_revoked'],
    [{ status: 'NotSupported' }, 'tcb_not_supported'],
    [{ qeStatus: 'NotSupported' }, 'tcb_not_supported'],
    [{ moduleStatus: 'NotSupported' }, 'tcb_not_supported'],
    [{ moduleVersion: 9 }, 'tdx_module_mismatch'],
  ] as const)('rejects %j with %s', async (options, code) => {
    await expect(verify(options)).rejects.toMatchObject({ code })
  })

  test.each([
    [{ qeStatus: 'OutOfDate' }, 'OutOfDate', ['MOCK-SA-00302']],
    [{ moduleStatus: 'OutOfDate' }, 'OutOfDate', ['MOCK-SA-00202']],
    [{ status: 'SWHardeningNeeded', qeStatus: 'OutOfDate' }, 'OutOfDate', ['MOCK-SA-00102', 'MOCK-SA-00302']],
    [
      { status: 'ConfigurationNeeded', moduleStatus: 'OutOfDate' },
      'OutOfDateConfigurationNeeded',
      ['MOCK-SA-00103', 'MOCK-SA-00202'],
    ],
    [
      { status: 'ConfigurationAndSWHardeningNeeded', qeStatus: 'OutOfDate' },
      'OutOfDateConfigurationNeeded',
      ['MOCK-SA-00104', 'MOCK-SA-00302'],
    ],
    [{ moduleVersion: 3 }, 'UpToDate', []],
    [{ moduleVersion: 0 }, 'UpToDate', []],
  ] as const)('merges %j to %s', async (options, status, advisoryIds) => {
    expect((await verify(options)).tcb).toMatchObject({ status, advisoryIds })
  })

  test('advises no relaunch if the quoting enclave is out of date', async () => {
    expect((await verify({ status: 'TDRelaunchAdvised', qeStatus: 'OutOfDate' })).tcb.status).toBe('OutOfDate')
  })
})
