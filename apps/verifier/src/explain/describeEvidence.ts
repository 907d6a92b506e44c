import {
  type ParsedQuote,
  type ParsedReport,
  parsePckPlatform,
  parsePem,
  parseSnpTcb,
  type ReportFlags,
  readReportFlags,
  readTdFlags,
  readTdxModule,
  type SnpProduct,
  type TdFlags,
  toSnpProduct,
} from '@countersign/attestation'
import { isZero, ServiceError, toHex } from '@countersign/protocol'
import { describeCertificates, describeFlags, describeOr, hexOrZero, type Line } from './lines.ts'

export function describeQuote(quote: ParsedQuote): Line[] {
  const { body, qeReport, trailing } = quote
  return [
    'TDX QUOTE',
    ['version', `${quote.version}, with a TD report ${body.kind === 'td15' ? '1.5' : '1.0'}`],
    ...describeFlags(readTdFlags(body), QUOTE_WORDS),
    ['attributes', toHex(body.tdAttributes)],
    ['XFAM', toHex(body.xfam)],
    ['bytes after the quote', trailing.length === 0 || !isZero(trailing) ? trailing.length : hexOrZero(trailing)],
    '',
    'TDX QUOTE: MEASUREMENTS',
    ['MRTD', toHex(body.mrTd)],
    ...body.rtmrs.map((rtmr, index): Line => [`RTMR${index}`, toHex(rtmr)]),
    ['MRCONFIGID', hexOrZero(body.mrConfigId)],
    ['MROWNER', hexOrZero(body.mrOwner)],
    ['MROWNERCONFIG', hexOrZero(body.mrOwnerConfig)],
    ...(body.mrServiceTd === undefined ? [] : [['MRSERVICETD', hexOrZero(body.mrServiceTd)] satisfies Line]),
    ['report data', hexOrZero(body.reportData)],
    '',
    'TDX QUOTE: TDX MODULE',
    ['module', describeModule(body.teeTcbSvn)],
    ['TCB components', body.teeTcbSvn.join(' ')],
    ...describeModuleNow(body.teeTcbSvn2),
    ['MRSEAM', hexOrZero(body.mrSeam)],
    ['signer', hexOrZero(body.mrSignerSeam)],
    '',
    ...describeOr('TDX QUOTE: PLATFORM', () => describePlatform(quote.pckChain)),
    ['quoting enclave', `product ${qeReport.isvProdId}, SVN ${qeReport.isvSvn}`],
    ['quoting enclave’s signer', toHex(qeReport.mrSigner)],
    '',
    ...describeOr('TDX QUOTE: CERTIFICATES', () => [
      'TDX QUOTE: CERTIFICATES',
      ...describeCertificates(parsePem(quote.pckChain).map((der, index) => [`PCK chain ${index + 1}`, der])),
    ]),
  ]
}

const QUOTE_WORDS = {
  septVeDisable: 'SEPT_VE_DISABLE: access to an unaccepted page stops the TD instead of raising an exception',
  migratable: 'MIGRATABLE: may move to another host',
  serviceTd: 'bound to a service TD, which may move it to another host',
  pks: 'PKS: may use supervisor protection keys',
  keyLocker: 'KL: may use Key Locker',
  lass: 'LASS: may use linear address space separation',
  perfmon: 'PERFMON: may use the performance counters',
  tpa: 'TPA: a trusted platform agent',
  reservedBits: 'reserved bits of the attributes or XFAM, or a required bit is missing',
} as const satisfies Record<Exclude<keyof TdFlags, 'debug'>, string>

function describeModule(teeTcbSvn: Uint8Array): string {
  const { id, svn } = readTdxModule(teeTcbSvn)
  return `${id ?? 'TDX 1.0'}, SVN ${svn}`
}

/** TDX 1.5 also reports the current values, after a module update. */
function describeModuleNow(teeTcbSvn: Uint8Array | undefined): Line[] {
  if (teeTcbSvn === undefined) return []
  return [
    ['module now', describeModule(teeTcbSvn)],
    ['TCB components now', teeTcbSvn.join(' ')],
  ]
}

function describePlatform(pckChain: string): Line[] {
  const { fmspc, pceId, pceSvn, components, ppid, platformInstanceId } = parsePckPlatform(pckChain)
  return [
    'TDX QUOTE: PLATFORM',
    ['FMSPC', fmspc],
    ['PCE id', pceId],
    ['PCE SVN', pceSvn],
    ['TCB components', components.join(' ')],
    ['PPID', ppid],
    ...(platformInstanceId === undefined ? [] : [['platform instance', platformInstanceId] satisfies Line]),
  ]
}

export function describeReport(report: ParsedReport): Line[] {
  const { policy, cpuid } = report
  const product = cpuid === undefined ? undefined : toSnpProduct(cpuid)
  return [
    'SEV-SNP REPORT',
    ['version', report.version],
    ...describeFlags(readReportFlags(report), REPORT_WORDS),
    ['policy', toNumeral(policy)],
    ['minimum firmware ABI', `${(policy >> 8n) & 0xffn}.${policy & 0xffn}`],
    ['VMPL', `${report.vmpl} (0 is the most privileged)`],
    ['guest SVN', report.guestSvn],
    ['signed by', report.signingKey === 'VCEK' ? 'VCEK, a key of the chip' : 'VLEK, a key of the cloud provider'],
    '',
    'SEV-SNP REPORT: MEASUREMENTS',
    ['measurement', toHex(report.measurement)],
    ['report data', hexOrZero(report.reportData)],
    ['host data', hexOrZero(report.hostData)],
    ['family id', hexOrZero(report.familyId)],
    ['image id', hexOrZero(report.imageId)],
    ['id key digest', hexOrZero(report.idKeyDigest)],
    ['author key digest', report.authorKeyEnabled ? toHex(report.authorKeyDigest) : 'none'],
    '',
    'SEV-SNP REPORT: PLATFORM',
    ['processor', describeProcessor(cpuid, product)],
    ['chip', hexOrZero(report.chipId)],
    ['platform information', toNumeral(report.platformInfo)],
    ['reported TCB', describeTcb(report.reportedTcb, product)],
    ['current TCB', describeTcb(report.currentTcb, product)],
    ['committed TCB', describeTcb(report.committedTcb, product)],
    ['launch TCB', describeTcb(report.launchTcb, product)],
  ]
}

const REPORT_WORDS = {
  migrationAgent: 'MIGRATE_MA: may have a migration agent, which can move it to another host',
  smt: 'SMT: may run where cores have two threads',
  singleSocket: 'SINGLE_SOCKET: runs on one socket only',
  aliasCheckComplete: 'ALIAS_CHECK_COMPLETE: the firmware found no aliased memory addresses',
  reservedBits: 'reserved policy bits, or the required bit is missing',
} as const satisfies Record<Exclude<keyof ReportFlags, 'debug'>, string>

function toNumeral(value: bigint): string {
  return `0x${value.toString(16)}`
}

function describeProcessor(cpuid: ParsedReport['cpuid'], product: SnpProduct | undefined): string {
  if (cpuid === undefined) return 'not stated before version 3'
  return `${product ?? 'unknown'} (family ${cpuid.family}, model ${cpuid.model}, stepping ${cpuid.stepping})`
}

/** The layout depends on the product. If the report names none, every layout is printed. */
function describeTcb(bytes: Uint8Array<ArrayBuffer>, product: SnpProduct | undefined): string {
  const hex = toHex(bytes)
  if (product !== undefined) return `${hex}: ${readTcb(bytes, product) ?? `not as ${product} writes it`}`
  const readings = (['Milan', 'Turin'] as const).flatMap((candidate) => {
    const reading = readTcb(bytes, candidate)
    return reading === undefined ? [] : [`${reading} (as ${candidate === 'Milan' ? 'Milan or Genoa' : 'Turin'})`]
  })
  return `${hex}: ${readings.join('; ') || 'not a known product’s layout'}`
}

function readTcb(bytes: Uint8Array<ArrayBuffer>, product: SnpProduct): string | undefined {
  try {
    const { fmc, bl, tee, snp, ucode } = parseSnpTcb(bytes, product)
    return `${product === 'Turin' ? `FMC ${fmc}, ` : ''}boot loader ${bl}, TEE ${tee}, SNP ${snp}, microcode ${ucode}`
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
