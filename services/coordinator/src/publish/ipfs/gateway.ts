import { concatBytes } from '@countersign/protocol'
import {
  encodeCarHeader,
  encodeCarSection,
  encodeReceiptCar,
  isCid,
  parseBlock,
  ReceiptError,
} from '@countersign/receipt'
import { type MediaRange, parseMediaRanges } from '../../parseMediaRanges.ts'
import type { GetBlock } from './pinner.ts'

type GatewayDeps = { getBlock: GetBlock }

/** A `GET` or `HEAD /ipfs/:cid` request. */
export type GatewayRequest = {
  method: 'GET' | 'HEAD'
  cid: string
  format?: string | null | undefined
  accept?: string | null | undefined
  ifNoneMatch?: string | null | undefined
}

type GatewayAnswer =
  | { status: 200; headers: Record<string, string>; body: Uint8Array<ArrayBuffer> | null }
  | { status: 304; headers: Record<string, string>; body: null }
  /** Unsupported CID, unknown block, or no acceptable format. */
  | { status: 400 | 404 | 406; headers: Record<string, string>; body: null }

type Format = 'json' | 'raw' | 'car'

const formats: readonly Format[] = ['json', 'raw', 'car']
const mediaTypes: Record<Format, string> = {
  json: 'application/json',
  raw: 'application/vnd.ipld.raw',
  car: 'application/vnd.ipld.car',
}

/**
 * Serves a block as the Trustless Gateway specification says (specs.ipfs.tech/http-gateways/trustless-gateway): `?format=raw`,
 * `?format=car`, or the same by `Accept`. Default: JSON, which all our blocks are. Answers never change.
 */
export async function getIpfsBlock(deps: GatewayDeps, request: GatewayRequest): Promise<GatewayAnswer> {
  const { method, cid } = request
  const vary = { vary: 'Accept' }
  // CIDs with other codecs, hashes and spellings never name a stored block.
  if (!isCid(cid)) return { status: 400, headers: vary, body: null }
  const format = chooseFormat(request)
  if (format === undefined) return { status: 406, headers: vary, body: null }
  const block = await deps.getBlock(cid)
  if (block === undefined) return { status: 404, headers: vary, body: null }

  const etag = format === 'json' ? `"${cid}"` : `"${cid}.${format}"`
  const caching = { ...vary, etag, 'cache-control': 'public, max-age=29030400, immutable' }
  if (matches(request.ifNoneMatch, etag)) return { status: 304, headers: caching, body: null }
  const body = format === 'car' ? await toReceiptCar(deps, cid, block) : block
  if (body === undefined) return { status: 404, headers: vary, body: null }
  const headers = {
    ...caching,
    ...describe(cid, format),
    'content-length': String(body.length),
    'x-content-type-options': 'nosniff',
    'x-ipfs-path': `/ipfs/${cid}`,
    'x-ipfs-roots': cid,
    // For caches that ignore Accept: the URL of this representation.
    ...(request.format || format === 'json' ? {} : { 'content-location': `/ipfs/${cid}?format=${format}` }),
  }
  return { status: 200, headers, body: method === 'HEAD' ? null : body }
}

function describe(cid: string, format: Format): Record<string, string> {
  if (format === 'json') return { 'content-type': mediaTypes.json }
  const extension = format === 'raw' ? 'bin' : 'car'
  return {
    'content-type': format === 'raw' ? mediaTypes.raw : `${mediaTypes.car}; version=1; order=dfs; dups=n`,
    'content-disposition': `attachment; filename="${cid}.${extension}"`,
  }
}

/** `format` takes precedence over `Accept`, as the specification requires. */
function chooseFormat({ format, accept }: GatewayRequest): Format | undefined {
  if (format) return formats.find((known) => known === format)
  if (!accept?.trim()) return 'json'
  const ranges = parseMediaRanges(accept)
  const refused = ranges.filter(({ quality }) => quality === 0).map(({ type }) => type)
  // By weight, then specific types before wildcards: `application/vnd.ipld.raw, */*` means raw.
  const wanted = ranges
    .filter(({ quality }) => quality > 0)
    .toSorted((left, right) => right.quality - left.quality || toPrecision(right) - toPrecision(left))
  for (const range of wanted) {
    const found = formats.find((known) => !refused.includes(mediaTypes[known]) && covers(range, known))
    if (found) return found
  }
  return undefined
}

function toPrecision({ type }: MediaRange): number {
  if (type === '*/*') return 0
  return type.endsWith('/*') ? 1 : 2
}

function covers({ type, parameters }: MediaRange, format: Format): boolean {
  if (type === '*/*' || type === 'application/*') return true
  if (type !== mediaTypes[format]) return false
  // Order and duplicates don't matter for our CARs, and their version is 1.
  return format !== 'car' || (parameters.get('version') ?? '1') === '1'
}

/** RFC 9110 §13.1.2: ignores `W/`. */
function matches(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(etag)
}

type Bytes = Uint8Array<ArrayBuffer>

/**
 * Returns a block as a CAR: a version 2 receipt with all blocks that it names, and any other block on its own. Undefined if a block is
 * missing, because caches keep answers permanently and a partial receipt must not look complete.
 */
export async function toReceiptCar(
  deps: { getBlock: GetBlock },
  cid: string,
  block: Bytes,
): Promise<Bytes | undefined> {
  const receipt = parseIf('attestation', block)
  if (receipt === undefined) return concatBytes(encodeCarHeader(cid), encodeCarSection(cid, block))
  const [release, batch, policy] = await Promise.all([
    deps.getBlock(receipt.coordinator.release),
    deps.getBlock(receipt.signer.batch),
    receipt.policy === undefined ? undefined : deps.getBlock(receipt.policy),
  ])
  const named = release && parseIf('release', release)
  if (named === undefined) return undefined
  const [coordinator, collateral] = await Promise.all([
    deps.getBlock(named.coordinator),
    deps.getBlock(named.collateral),
  ])
  if (release === undefined || batch === undefined || coordinator === undefined || collateral === undefined)
    return undefined
  if (receipt.policy !== undefined && policy === undefined) return undefined
  const blocks = { release, batch, coordinator, ...(policy && { policy }) }
  return encodeReceiptCar({ bytes: block, collateral, blocks })
}

function parseIf<Name extends 'attestation' | 'release'>(name: Name, bytes: Bytes) {
  try {
    return parseBlock(name, bytes)
  } catch (error) {
    if (error instanceof ReceiptError) return undefined
    throw error
  }
}
