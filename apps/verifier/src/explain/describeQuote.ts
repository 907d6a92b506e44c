import {
  type ParsedQuote,
  parsePckPlatform,
  parsePem,
  readTdFlags,
  readTdxModule,
  type TdFlags,
} from '@countersign/attestation'
import { isZero, toHex } from '@countersign/protocol'
import { describeCertificates, describeFlags, describeOr, hexOrZero, type Line } from './lines.ts'

export function describeQuote(quote: ParsedQuote): Line[] {
  const { body, qeReport, trailing } = quote
  return [
    'TDX QUOTE',
    ['version', `${quote.version}, with a TD report ${body.kind === 'td15' ? '1.5' : '1.0'}`],
    ...describeFlags(readTdFlags(body), WORDS),
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

const WORDS = {
  septVeDisable: 'SEPT_VE_DISABLE: a page that it has not accepted stops it, and raises no exception in it',
  migratable: 'MIGRATABLE: may move to another host',
  serviceTd: 'bound to a service TD, which may move it to another host',
  pks: 'PKS: may use supervisor protection keys',
  keyLocker: 'KL: may use Key Locker',
  lass: 'LASS: may use linear address space separation',
  perfmon: 'PERFMON: may use the performance counters',
  tpa: 'TPA: a trusted platform agent',
  reservedBits: 'bits of the attributes or XFAM that have no meaning, or a required one that is missing',
} as const satisfies Record<Exclude<keyof TdFlags, 'debug'>, string>

function describeModule(teeTcbSvn: Uint8Array): string {
  const { id, svn } = readTdxModule(teeTcbSvn)
  return `${id ?? 'TDX 1.0'}, SVN ${svn}`
}

/** TDX 1.5 also tells what runs now, where the module was updated beneath the TD. */
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
