import {
  type Collateral,
  type CrlDescription,
  describeCollateral,
  parseCollateral,
  parsePem,
  parseQuote,
  parseReport,
  SNP_REPORT_BYTES,
} from '@countersign/attestation'
import { fromHex } from '@countersign/protocol'
import {
  ATTESTATION_V2,
  MAX_RECEIPT_BYTES,
  parseAnyReceipt,
  parseReceiptCar,
  type ReceiptFiles,
  toCid,
} from '@countersign/receipt'
import {
  isCar,
  MAX_COLLATERAL_BYTES,
  toPrintable,
  trimWhiteSpace,
  VerifierError,
  withSource,
} from '@countersign/verify'
import { describeQuote, describeReport } from './explain/describeEvidence.ts'
import { describeAttestation, describeReceipt } from './explain/describeReceipt.ts'
import { describeCertificates, describeOr, type Line, list, toSeconds } from './explain/lines.ts'
import { readFileBounded } from './files.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** Prints a file's content. Verifies nothing. */
export async function explain(path: string): Promise<string> {
  const bytes = await readFileBounded(path, { maxBytes: MAX_COLLATERAL_BYTES })
  const lines = withSource(path, () =>
    isCar({ name: path, bytes }) ? describeFiles(parseReceiptCar(bytes)) : describe(bytes),
  )
  const caution = 'This is only what the file says. Anyone could have written it. To check a receipt, use verify.'
  return `${[caution, '', ...lines.map(print)].join('\n')}\n`
}

function print(line: Line): string {
  if (typeof line === 'string') return toPrintable(line)
  const [name, value] = line
  return `  ${name.padEnd(26)} ${toPrintable(String(value))}`
}

function describe(bytes: Bytes): Line[] {
  if (bytes.length > MAX_COLLATERAL_BYTES) throw unrecognised('larger than 8 MiB')
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).trim()
  if (text.startsWith('{')) return describeJson(trimWhiteSpace(bytes), text)
  if (text.startsWith('-----BEGIN ')) throw unrecognised('explain does not support PEM certificates')
  const hex = /^(?:0x)?((?:[0-9a-f]{2})+)$/i.exec(text)?.[1]
  if (hex === undefined && /^[a-z0-9+/\s]{100,}=*$/i.test(text))
    throw unrecognised('this looks like base64: decode it first')
  return describeEvidence(hex === undefined ? bytes : fromHex(hex.toLowerCase()))
}

/** White space around the object isn't part of the block with this CID. */
function describeJson(bytes: Bytes, text: string): Line[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unrecognised('starts like JSON, but is invalid')
  }
  const { tcb_info: tcbInfo, version } = value as { tcb_info?: unknown; version?: unknown }
  if (tcbInfo !== undefined) return describeCollateralFile(parseCollateral(text), toCid(bytes))
  const kind = typeof version === 'string' ? version : ''
  if (kind.startsWith('countersign-manifest/'))
    throw unrecognised('this is a manifest: pass it to verify with --manifest')
  if (!kind.startsWith('countersign-attestation/') || bytes.length > MAX_RECEIPT_BYTES) {
    throw unrecognised('JSON, but neither a receipt nor collateral')
  }
  return describeFiles({ bytes, blocks: {} })
}

function describeFiles(files: ReceiptFiles): Line[] {
  const receipt = parseAnyReceipt(files.bytes)
  return receipt.version === ATTESTATION_V2
    ? describeAttestation(receipt, files)
    : describeReceipt(receipt, toCid(files.bytes))
}

function describeEvidence(bytes: Bytes): Line[] {
  if (bytes.length === SNP_REPORT_BYTES) return describeReport(parseReport(bytes))
  const [version, high] = bytes
  // For other bytes, the quote parser would only report an unknown version.
  if ((version !== 4 && version !== 5) || high !== 0) {
    throw unrecognised(
      `expected a TDX quote of version 4 or 5, an SEV-SNP report of ${SNP_REPORT_BYTES} bytes (both in binary or hex), or JSON`,
    )
  }
  return describeQuote(parseQuote(bytes))
}

function unrecognised(details: string) {
  return new VerifierError('evidence_unrecognised', 'unknown file type', { details })
}

function describeCollateralFile(collateral: Collateral, cid: string): Line[] {
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
    ['known TDX modules', tcbInfo.tdxModules.join(', ') || 'TDX 1.0 only'],
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
