import { type Collateral, type CrlDescription, describeCollateral, parsePem } from '@countersign/attestation'
import { describeCertificates, describeOr, type Line, list, toSeconds } from './lines.ts'

export function describeCollateralFile(collateral: Collateral, cid: string): Line[] {
  return [
    'COLLATERAL',
    ['CID', cid],
    '',
    ...describeOr('DOCUMENTS AND REVOCATION LISTS', () => describeParts(collateral)),
    '',
    'ISSUERS',
    ...describeChain('PCK revocation list', collateral.pck_crl_issuer_chain),
    ...describeChain('TCB info', collateral.tcb_info_issuer_chain),
    ...describeChain('QE identity', collateral.qe_identity_issuer_chain),
  ]
}

function describeParts(collateral: Collateral): Line[] {
  const { tcbInfo, qeIdentity, rootCrl, pckCrl } = describeCollateral(collateral)
  return [
    'TCB INFO',
    ['for FMSPC', tcbInfo.fmspc],
    ['for PCE id', tcbInfo.pceId],
    ...describeIssue(tcbInfo),
    ...list(
      'levels, highest first',
      tcbInfo.tcbLevels.map(({ status, tcbDate }) => `${status}, as of ${toSeconds(tcbDate)}`),
    ),
    ['TDX modules it knows', tcbInfo.tdxModules.join(', ') || 'TDX 1.0 only'],
    '',
    'QUOTING ENCLAVE IDENTITY',
    ...describeIssue(qeIdentity),
    ['product', qeIdentity.isvProdId],
    ['signer', qeIdentity.mrSigner],
    '',
    'ROOT REVOCATION LIST',
    ...describeCrl(rootCrl),
    '',
    'PCK REVOCATION LIST',
    ...describeCrl(pckCrl),
  ]
}

function describeIssue(document: { issueDate: Date; nextUpdate: Date; tcbEvaluationDataNumber: number }): Line[] {
  return [
    ['issued', toSeconds(document.issueDate)],
    ['next update', toSeconds(document.nextUpdate)],
    ['evaluation number', document.tcbEvaluationDataNumber],
  ]
}

function describeCrl({ thisUpdate, nextUpdate, revoked }: CrlDescription): Line[] {
  return [
    ['issued', toSeconds(thisUpdate)],
    ['next update', toSeconds(nextUpdate)],
    ['certificates revoked', revoked],
  ]
}

function describeChain(name: string, pem: string): Line[] {
  return describeOr(name, () => describeCertificates(parsePem(pem).map((der, index) => [`${name} ${index + 1}`, der])))
}
