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

/** What the gateway reads of `GET` or `HEAD /ipfs/:cid`. */
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
  /** Not a CID that is served here; not held; no format that is asked for can be given. */
  | { status: 400 | 404 | 406; headers: Record<string, string>; body: null }

type Format = 'json' | 'raw' | 'car'

const formats: readonly Format[] = ['json', 'raw', 'car']
const mediaTypes: Record<Format, string> = {
  json: 'application/json',
  raw: 'application/vnd.ipld.raw',
  car: 'application/vnd.ipld.car',
}

/**
 * A block as the Trustless Gateway specification has it (specs.ipfs.tech/http-gateways/trustless-gateway): `?format=raw`,
 * `?format=car`, or the same by `Accept`. Without either it is the JSON that every block of ours is. Blocks never change, so
 * neither do answers.
 */
export async function getIpfsBlock(deps: GatewayDeps, request: GatewayRequest): Promise<GatewayAnswer> {
  const { method, cid } = request
  const vary = { vary: 'Accept' }
  // Other codecs, hashes and spellings are CIDs too, but never of a block that is here.
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
    // For caches that do not look at Accept: where this representation alone is.
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

/** `format` goes before `Accept`; the specification wants it so. */
function chooseFormat({ format, accept }: GatewayRequest): Format | undefined {
  if (format) return formats.find((known) => known === format)
  if (!accept?.trim()) return 'json'
  const ranges = parseMediaRanges(accept)
  const refused = ranges.filter(({ quality }) => quality === 0).map(({ type }) => type)
  // By weight, and among equals what is named before what is merely allowed: `application/vnd.ipld.raw, */*` is raw.
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
  // CARs of one block are in any order and without duplicates; their version is 1.
  return format !== 'car' || (parameters.get('version') ?? '1') === '1'
}

/** RFC 9110 §13.1.2: compared without regard to `W/`. */
function matches(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(etag)
}

type Bytes = Uint8Array<ArrayBuffer>

/**
 * A block as a CAR: a receipt of version 2 with all the blocks that it names, and every other block alone. Undefined where one of
 * them is not held: readers keep the answer for ever, and part of a receipt must not pass for the whole.
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
