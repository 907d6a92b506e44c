import {
  type ParsedReport,
  parseSnpTcb,
  type ReportFlags,
  readReportFlags,
  type SnpProduct,
  toSnpProduct,
} from '@countersign/attestation'
import { ServiceError, toHex } from '@countersign/protocol'
import { describeFlags, hexOrZero, type Line } from './lines.ts'

export function describeReport(report: ParsedReport): Line[] {
  const { policy, cpuid } = report
  const product = cpuid === undefined ? undefined : toSnpProduct(cpuid)
  return [
    'SEV-SNP REPORT',
    ['version', report.version],
    ...describeFlags(readReportFlags(report), WORDS),
    ['policy', toNumeral(policy)],
    ['least firmware ABI', `${(policy >> 8n) & 0xffn}.${policy & 0xffn}`],
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

const WORDS = {
  migrationAgent: 'MIGRATE_MA: may have a migration agent, which can move it to another host',
  smt: 'SMT: may run where cores have two threads',
  singleSocket: 'SINGLE_SOCKET: runs on one socket only',
  aliasCheckComplete: 'ALIAS_CHECK_COMPLETE: the firmware found no two addresses of one memory cell',
  reservedBits: 'policy bits that have no meaning, or the required one is missing',
} as const satisfies Record<Exclude<keyof ReportFlags, 'debug'>, string>

function toNumeral(value: bigint): string {
  return `0x${value.toString(16)}`
}

function describeProcessor(cpuid: ParsedReport['cpuid'], product: SnpProduct | undefined): string {
  if (cpuid === undefined) return 'not stated before version 3'
  return `${product ?? 'unknown'} (family ${cpuid.family}, model ${cpuid.model}, stepping ${cpuid.stepping})`
}

/** The layout depends on the product. Where the report does not name one, every possible reading is printed. */
function describeTcb(bytes: Uint8Array<ArrayBuffer>, product: SnpProduct | undefined): string {
  const hex = toHex(bytes)
  if (product !== undefined) return `${hex}: ${readTcb(bytes, product) ?? `not as ${product} writes it`}`
  const readings = (['Milan', 'Turin'] as const).flatMap((candidate) => {
    const reading = readTcb(bytes, candidate)
    return reading === undefined ? [] : [`${reading} (as ${candidate === 'Milan' ? 'Milan or Genoa' : 'Turin'})`]
  })
  return `${hex}: ${readings.join('; ') || 'not as any known product writes it'}`
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
