import { toHex } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'
import { type ObjectReader, readJson } from './readJson.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The TCB levels of the platforms with one FMSPC (Intel PCS API v4, "Get TDX TCB Info", `tcbInfo` version 3). */
export type TcbInfo = {
  issueDate: number
  nextUpdate: number
  fmspc: string
  pceId: string
  tcbEvaluationDataNumber: number
  /** The TDX module of TDX 1.0. */
  tdxModule: TdxModule
  /** The modules of TDX 1.5 and later, by version. */
  tdxModuleIdentities: readonly TdxModuleIdentity[]
  /** Highest first. */
  tcbLevels: readonly TcbLevel[]
}

type TdxModule = { mrSigner: Bytes; attributes: Bytes }

export type TdxModuleIdentity = TdxModule & { id: string; tcbLevels: readonly IsvSvnLevel[] }

/** The status of SVNs from `isvSvn` on. */
export type IsvSvnLevel = { isvSvn: number; status: string; advisoryIds: readonly string[] }

export type TcbLevel = {
  sgxComponents: readonly number[]
  tdxComponents: readonly number[]
  pceSvn: number
  status: string
  advisoryIds: readonly string[]
  tcbDate: number
}

export function parseTcbInfo(text: string): TcbInfo {
  const json = readJson(text, malformed)
  if (json.integer('version', 0xffff_ffff) !== 3) throw malformed('version is not 3')
  if (json.string('id') !== 'TDX') throw new QuoteError('tcb_info_mismatch', 'TCB info is not for TDX')
  if (json.integer('tcbType', 0xffff_ffff) !== 0) throw malformed('tcbType is not 0')
  return {
    issueDate: json.time('issueDate'),
    nextUpdate: json.time('nextUpdate'),
    fmspc: toHex(json.hex('fmspc', 6)),
    pceId: toHex(json.hex('pceId', 2)),
    tcbEvaluationDataNumber: json.integer('tcbEvaluationDataNumber', 0xffff_ffff),
    tdxModule: toTdxModule(json.object('tdxModule')),
    tdxModuleIdentities: json.has('tdxModuleIdentities') ? json.objects('tdxModuleIdentities').map(toIdentity) : [],
    tcbLevels: sortLevels(json.objects('tcbLevels').map(toTcbLevel)),
  }
}

function toTdxModule(json: ObjectReader): TdxModule {
  json.hex('attributesMask', 8)
  return { mrSigner: json.hex('mrsigner', 48), attributes: json.hex('attributes', 8) }
}

function toIdentity(json: ObjectReader): TdxModuleIdentity {
  return {
    id: json.string('id').toUpperCase(),
    ...toTdxModule(json),
    tcbLevels: json.objects('tcbLevels').map(toIsvSvnLevel),
  }
}

export function toIsvSvnLevel(json: ObjectReader): IsvSvnLevel {
  json.time('tcbDate')
  return {
    isvSvn: json.object('tcb').integer('isvsvn', 65_535),
    status: json.string('tcbStatus'),
    advisoryIds: json.has('advisoryIDs') ? json.strings('advisoryIDs') : [],
  }
}

function toTcbLevel(json: ObjectReader): TcbLevel {
  const tcb = json.object('tcb')
  return {
    sgxComponents: toComponents(tcb, 'sgxtcbcomponents'),
    tdxComponents: toComponents(tcb, 'tdxtcbcomponents'),
    pceSvn: tcb.integer('pcesvn', 65_535),
    status: json.string('tcbStatus'),
    advisoryIds: json.has('advisoryIDs') ? json.strings('advisoryIDs') : [],
    tcbDate: json.time('tcbDate'),
  }
}

function toComponents(tcb: ObjectReader, name: string): number[] {
  const components = tcb.objects(name).map((component) => component.integer('svn', 255))
  if (components.length !== 16) throw malformed(`${name} does not have 16 entries`)
  return components
}

/** Sorts in descending order by SGX components, PCE SVN and TDX components, as Intel's library. Rejects equal levels. */
function sortLevels(levels: TcbLevel[]): TcbLevel[] {
  const sorted = levels.toSorted((left, right) => compareLevels(right, left))
  for (const [index, level] of sorted.entries()) {
    const next = sorted[index + 1]
    if (next !== undefined && compareLevels(level, next) === 0) throw malformed('two equal TCB levels')
  }
  return sorted
}

function compareLevels(left: TcbLevel, right: TcbLevel): number {
  return (
    compareComponents(left.sgxComponents, right.sgxComponents) ||
    left.pceSvn - right.pceSvn ||
    compareComponents(left.tdxComponents, right.tdxComponents)
  )
}

function compareComponents(left: readonly number[], right: readonly number[]): number {
  for (const [index, value] of left.entries()) {
    const difference = value - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function malformed(details: string) {
  return new QuoteError('tcb_info_malformed', 'malformed TCB info', { details })
}
