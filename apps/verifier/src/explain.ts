import { X509Certificate } from 'node:crypto'
import {
  type Collateral,
  type ParsedQuote,
  type ParsedReport,
  parseCollateral,
  parsePem,
  parseQuote,
  parseReport,
} from '@countersign/attestation'
import { fromHex, hashEnclaveConfig, ServiceError, toHex } from '@countersign/protocol'
import { type AttestationReceiptV1, MAX_RECEIPT_BYTES, parseReceipt, toCid } from '@countersign/receipt'
import { about, describeError, VerifierError } from './errors.ts'
import { MAX_COLLATERAL_BYTES } from './loadCollateral.ts'
import { readFileBounded } from './readFileBounded.ts'
import { toPrintable } from './toPrintable.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** A heading, or a name with its value. */
type Line = string | [name: string, value: string | number | boolean]

const REPORT_BYTES = 1184

/** What a file says, for people; nothing is verified. */
export async function explain(path: string): Promise<string> {
  const bytes = await readFileBounded(path, { maxBytes: MAX_COLLATERAL_BYTES })
  const lines = about(path, () => describe(bytes))
  return `${['What it says, not whether it is true. Use verify to check.', '', ...lines.map(print)].join('\n')}\n`
}

function print(line: Line): string {
  if (typeof line === 'string') return toPrintable(line)
  const [name, value] = line
  return `  ${name.padEnd(26)} ${toPrintable(String(value))}`
}

function describe(bytes: Bytes): Line[] {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  if (text.trimStart().startsWith('{')) return describeJson(bytes, text)
  const hex = /^(?:0x)?((?:[0-9a-f]{2})+)\s*$/i.exec(text)?.[1]
  return describeEvidence(hex === undefined ? bytes : fromHex(hex.toLowerCase()))
}

function describeJson(bytes: Bytes, text: string): Line[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unrecognised('begins like JSON, but is none')
  }
  if (typeof value === 'object' && value !== null && 'tcb_info' in value) {
    return describeCollateral(parseCollateral(text.trim()), toCid(bytes))
  }
  if (bytes.length > MAX_RECEIPT_BYTES) throw unrecognised('JSON, but neither a receipt nor collateral')
  return describeReceipt(parseReceipt(bytes), toCid(bytes))
}

function describeEvidence(bytes: Bytes): Line[] {
  if (bytes.length === REPORT_BYTES) return describeReport(parseReport(bytes))
  try {
    return describeQuote(parseQuote(bytes))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw unrecognised(`neither JSON, a report of ${REPORT_BYTES} bytes nor a quote: ${error.details}`)
  }
}

function describeReceipt(receipt: AttestationReceiptV1, cid: string): Line[] {
  const { transaction, signer, coordinator, entropy } = receipt
  const { selfAttestation } = coordinator
  return [
    'RECEIPT',
    ['version', receipt.version],
    ['CID', cid],
    '',
    'TRANSACTION',
    ['chain', transaction.chainId],
    ['hash', transaction.txHash],
    ['from', transaction.from],
    ['to', transaction.to],
    ['nonce', transaction.nonce],
    ['value in wei', transaction.value],
    ['data', transaction.data],
    ['gas', transaction.gas],
    ['max fee per gas', transaction.maxFeePerGas],
    ['max priority fee per gas', transaction.maxPriorityFeePerGas],
    ['digest signed', transaction.digestSigned],
    '',
    'TIMES',
    ['entropy sample', entropy.timestamp],
    ['coordinator’s report', selfAttestation.fetchedAt],
    ['signature', transaction.signedAt],
    '',
    'ENCLAVE',
    ['mode, as it states', signer.mode],
    ['key', signer.keyId],
    ['batch', `${signer.batch.sequence} of boot ${signer.batch.bootId}`],
    ['place in the batch', `${signer.inclusion.leafIndex + 1} of ${signer.inclusion.treeSize}`],
    ['TCB status, as it states', signer.tcbStatus],
    ['collateral', signer.collateral],
    ['event log', signer.eventLog === undefined ? 'none' : `${signer.eventLog.length} characters`],
    ...describeConfig(signer.config),
    '',
    ...describeOr('TDX QUOTE', () => describeQuote(parseQuote(fromHex(signer.quoteHex)))),
    '',
    'COORDINATOR',
    ['mode, as it states', coordinator.mode],
    ['key', coordinator.publicKey],
    ['configuration hash', selfAttestation.configHash],
    ...describeCertificates(Object.entries(selfAttestation.certificates).map(([name, der]) => [name, fromHex(der)])),
    '',
    ...describeOr('SEV-SNP REPORT', () => describeReport(parseReport(fromHex(selfAttestation.reportHex)))),
    '',
    'ENTROPY',
    ['source', entropy.source],
    ['key', entropy.publicKey],
    ['sequence', entropy.sequence],
    ['value', entropy.valueHex],
  ]
}

/** Evidence inside a receipt may be anything; the rest of the receipt is told all the same. */
function describeOr(heading: string, describeIt: () => Line[]): Line[] {
  try {
    return describeIt()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [heading, ['none', describeError(error).message]]
  }
}

function describeConfig(config: AttestationReceiptV1['signer']['config']): Line[] {
  return [
    ['configuration hash', hashOrFault(config)],
    ...config.issuers.map(
      ({ issuer, audience, jwksOrigin }): Line => [
        '  accepts sign-ins of',
        `${issuer} for ${audience}, keys from ${jwksOrigin}`,
      ],
    ),
    ['  authorities', config.caSet],
    ['  root secret', config.rootSecret],
    ['  quotes from', config.quoteSource],
    ['  caller policy', config.callerPolicy],
    ['  version', config.version],
  ]
}

function hashOrFault(config: AttestationReceiptV1['signer']['config']): string {
  try {
    return toHex(hashEnclaveConfig(config))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return `none: ${error.details}`
  }
}

function describeQuote(quote: ParsedQuote): Line[] {
  const { body, qeReport } = quote
  return [
    'TDX QUOTE',
    ['version', quote.version],
    ['body', body.kind === 'td15' ? 'TD report 1.5' : 'TD report 1.0'],
    ['MRTD', toHex(body.mrTd)],
    ...body.rtmrs.map((rtmr, index): Line => [`RTMR${index}`, toHex(rtmr)]),
    ['MRCONFIGID', toHex(body.mrConfigId)],
    ['MROWNER', toHex(body.mrOwner)],
    ['MROWNERCONFIG', toHex(body.mrOwnerConfig)],
    ...(body.mrServiceTd === undefined ? [] : [['MRSERVICETD', toHex(body.mrServiceTd)] as Line]),
    ['report data', toHex(body.reportData)],
    ['attributes', nameBits(body.tdAttributes, TD_ATTRIBUTES)],
    ['XFAM', toHex(body.xfam)],
    ['TDX module MRSEAM', toHex(body.mrSeam)],
    ['TDX module signer', toHex(body.mrSignerSeam)],
    ['TEE TCB SVNs', body.teeTcbSvn.join(' ')],
    ...(body.teeTcbSvn2 === undefined ? [] : [['TEE TCB SVNs now', body.teeTcbSvn2.join(' ')] as Line]),
    ['quoting enclave signer', toHex(qeReport.mrSigner)],
    ['quoting enclave', `product ${qeReport.isvProdId}, SVN ${qeReport.isvSvn}`],
    ['bytes after the quote', quote.trailing.length],
    ...describeCertificates(parsePem(quote.pckChain).map((der, index) => [`PCK chain ${index + 1}`, der])),
  ]
}

/** Intel TDX Module ABI, ATTRIBUTES: the bits that have a name. Policy reads them in `attestation`, not here. */
const TD_ATTRIBUTES: readonly [bit: number, name: string][] = [
  [0, 'DEBUG'],
  [27, 'LASS'],
  [28, 'SEPT_VE_DISABLE'],
  [29, 'MIGRATABLE'],
  [30, 'PKS'],
  [31, 'KL'],
  [62, 'TPA'],
  [63, 'PERFMON'],
]

/** AMD SEV-SNP Firmware ABI, guest policy: the bits that have a name. */
const GUEST_POLICY: readonly [bit: number, name: string][] = [
  [16, 'SMT'],
  [18, 'MIGRATE_MA'],
  [19, 'DEBUG'],
  [20, 'SINGLE_SOCKET'],
]

function nameBits(bytes: Uint8Array, names: readonly [bit: number, name: string][]): string {
  const isSet = (bit: number) => (((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 1
  const set = names.filter(([bit]) => isSet(bit)).map(([, name]) => name)
  return `${toHex(bytes)} (${set.length === 0 ? 'none' : set.join(', ')})`
}

function describeReport(report: ParsedReport): Line[] {
  const policy = new Uint8Array(8)
  new DataView(policy.buffer).setBigUint64(0, report.policy, true)
  const { cpuid } = report
  return [
    'SEV-SNP REPORT',
    ['version', report.version],
    ['measurement', toHex(report.measurement)],
    ['report data', toHex(report.reportData)],
    ['host data', toHex(report.hostData)],
    ['policy', nameBits(policy, GUEST_POLICY)],
    ['least firmware ABI', `${policy[1]}.${policy[0]}`],
    ['VMPL', report.vmpl],
    ['guest SVN', report.guestSvn],
    ['signed by', report.signingKey],
    [
      'processor',
      cpuid === undefined ? 'not stated' : `family ${cpuid.family}, model ${cpuid.model}, stepping ${cpuid.stepping}`,
    ],
    ['chip', toHex(report.chipId)],
    ['reported TCB', toHex(report.reportedTcb)],
    ['current TCB', toHex(report.currentTcb)],
    ['committed TCB', toHex(report.committedTcb)],
    ['launch TCB', toHex(report.launchTcb)],
    ['family id', toHex(report.familyId)],
    ['image id', toHex(report.imageId)],
    ['id key digest', toHex(report.idKeyDigest)],
    ['author key digest', report.authorKeyEnabled ? toHex(report.authorKeyDigest) : 'none'],
  ]
}

function describeCollateral(collateral: Collateral, cid: string): Line[] {
  return [
    'COLLATERAL',
    ['CID', cid],
    '',
    'TCB INFO',
    ...describeSigned(collateral.tcb_info),
    '',
    'QUOTING ENCLAVE IDENTITY',
    ...describeSigned(collateral.qe_identity),
    '',
    'REVOCATION LISTS',
    ['root', `${collateral.root_ca_crl.length / 2} bytes`],
    ['PCK', `${collateral.pck_crl.length / 2} bytes`],
    '',
    'ISSUERS',
    ...describeChain('PCK CRL issuer', collateral.pck_crl_issuer_chain),
    ...describeChain('TCB info issuer', collateral.tcb_info_issuer_chain),
    ...describeChain('QE identity issuer', collateral.qe_identity_issuer_chain),
  ]
}

/** The plain members of a JSON text that Intel signed; its levels are for the verifier. */
function describeSigned(text: string): Line[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return [['text', 'not JSON']]
  }
  if (typeof value !== 'object' || value === null) return [['text', 'not an object']]
  return Object.entries(value).flatMap(([name, member]): Line[] => {
    if (typeof member === 'string' || typeof member === 'number') return [[name, member]]
    return Array.isArray(member) ? [[name, `${member.length} entries`]] : []
  })
}

function describeChain(name: string, pem: string): Line[] {
  return describeCertificates(parsePem(pem).map((der, index) => [`${name} ${index + 1}`, der]))
}

function describeCertificates(certificates: readonly (readonly [name: string, der: Bytes])[]): Line[] {
  return certificates.map(([name, der]): Line => {
    try {
      const { subject, validFromDate, validToDate } = new X509Certificate(der)
      const commonName = /^CN=(.*)$/m.exec(subject)?.[1] ?? 'no name'
      return [name, `${commonName}, ${validFromDate.toISOString()} to ${validToDate.toISOString()}`]
    } catch {
      return [name, `${der.length} bytes that are no certificate`]
    }
  })
}

function unrecognised(details: string) {
  return new VerifierError('evidence_unrecognised', 'cannot tell what this is', { details })
}
