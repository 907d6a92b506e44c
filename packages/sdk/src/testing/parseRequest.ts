import { assertApprovals } from '@countersign/policy'
import {
  type Approval,
  type Authorization,
  assertAuthorizationAllowed,
  type Hex,
  hashMessage,
  hashTypedData,
  hashUnsignedTransaction,
  isPlainObject,
  isPrefixedHex,
  type MessageContent,
  type OffChainContent,
  parseAuthorization,
  parseJson,
  parseTxMetadata,
  readMembers,
  ServiceError,
  type SignDigestRequest,
  type TxMetadata,
  type TypedData,
  toPrefixedHex,
} from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { bytesToHex, numberToBytes } from 'viem'
import { ProblemFailure, type TestProblemCode } from './problems.ts'
import { toBase64Url } from './testReceipt.ts'

const MAX_BODY_BYTES = 131_072
const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const MAX_POSITION = 2n ** 63n - 1n

export async function readJsonBody(request: Request): Promise<unknown> {
  const bytes = new Uint8Array(await request.arrayBuffer())
  if (bytes.length > MAX_BODY_BYTES) throw new ProblemFailure({ code: 'body_too_large' })
  if (bytes.length === 0) return undefined
  if (!/^application\/json[ \t]*(?:;.*)?$/i.test(request.headers.get('content-type') ?? '')) {
    throw new ProblemFailure({ code: 'unsupported_media_type' })
  }
  try {
    return parseJson(bytes)
  } catch {
    throw new ProblemFailure({ code: 'invalid_json' })
  }
}

export function assertEmptyBody(body: unknown): void {
  const isEmptyObject = isPlainObject(body) && Object.keys(body).length === 0
  if (body !== undefined && !isEmptyObject) throw invalidRequest('send no body, or {}')
}

export type ParsedWalletUse = { wallet: Hex | undefined; approvals: readonly Approval[] | undefined }

/** Takes `wallet` and `approvals` out of the body of a signing; the rest is what is to be signed. */
export function parseWalletUse(body: unknown): ParsedWalletUse & { rest: unknown } {
  if (!isPlainObject(body)) return { rest: body, wallet: undefined, approvals: undefined }
  const { wallet, approvals, ...rest } = body
  if (wallet === undefined && approvals !== undefined) throw invalidRequest('approvals are for a vault')
  return { rest, wallet: wallet === undefined ? undefined : parseAddress(wallet), approvals: parseApprovals(approvals) }
}

export function parseAddress(value: unknown): Hex {
  if (isPrefixedHex(value, 20)) return value.toLowerCase() as Hex
  throw invalidRequest('wallet is not an address')
}

/** An empty list is none. */
function parseApprovals(value: unknown): readonly Approval[] | undefined {
  if (value === undefined) return undefined
  try {
    assertApprovals(value)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw invalidRequest(`approvals: ${error.details}`)
  }
  return value.length === 0 ? undefined : value
}

export function parseVaultRequest(body: unknown): { policy: unknown; address: Hex | undefined } {
  const names = { required: ['policy'], optional: ['address'] } as const
  const { policy, address } = readMembers(body, names, invalidRequest)
  return { policy, address: address === undefined ? undefined : parseAddress(address) }
}

export function parseSignDigest(body: unknown): SignDigestRequest {
  if (!isPlainObject(body)) throw invalidRequest('the body is not an object')
  const { digest: asked, txMetadata: metadata, ...foreign } = body
  if (Object.keys(foreign).length > 0) throw invalidRequest('the body has other members than digest and txMetadata')
  if (!isPrefixedHex(asked, 32)) {
    throw new ProblemFailure({ code: 'invalid_digest', detail: 'digest is not 0x and 64 hex digits' })
  }
  const txMetadata = readTxMetadata(metadata)
  const digest = asked.toLowerCase() as Hex
  if (toPrefixedHex(hashUnsignedTransaction(txMetadata)) !== digest)
    throw new ProblemFailure({ code: 'digest_mismatch' })
  return { digest, txMetadata }
}

export type ParsedOffChain = { digest: Hex } & OffChainContent

export function parseMessage(body: unknown): ParsedOffChain {
  if (!isPlainObject(body) || Object.keys(body).join() !== 'message') throw invalidRequest('expected only message')
  const content = body as MessageContent
  return { kind: 'message', content, digest: toPrefixedHex(asProblem(() => hashMessage(content.message))) }
}

export function parseTypedData(body: unknown): ParsedOffChain {
  const content = body as TypedData
  return { kind: 'typed-data', content, digest: toPrefixedHex(asProblem(() => hashTypedData(content))) }
}

export function parseAuthorizationRequest(body: unknown, implementations: readonly Hex[]): Authorization {
  return asProblem(() => {
    const authorization = parseAuthorization(body)
    assertAuthorizationAllowed(authorization, implementations)
    return authorization
  })
}

/** The protocol's own refusals, as the service answers them. */
function asProblem<R>(parse: () => R): R {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ServiceError) || !Object.hasOwn(errorCodes, error.code)) throw error
    throw new ProblemFailure({ code: error.code as TestProblemCode, detail: error.details })
  }
}

function readTxMetadata(value: unknown): TxMetadata {
  if (isPlainObject(value) && value.to === null) {
    throw new ProblemFailure({ code: 'unsupported_transaction', detail: 'to is null' })
  }
  try {
    return parseTxMetadata(value)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new ProblemFailure({ code: 'invalid_tx_metadata', detail: error.details })
  }
}

export function parseLimit([text, ...rest]: readonly string[]): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : Number.NaN
  if (rest.length > 0 || !(limit <= MAX_LIMIT)) throw invalidRequest(`limit is not an integer from 1 to ${MAX_LIMIT}`)
  return limit
}

/** How many of the oldest signings come after the position that it names. */
export function parseCursor([text, ...rest]: readonly string[]): number | undefined {
  if (text === undefined) return undefined
  const position = /^[A-Za-z0-9_-]{11}$/.test(text) ? fromBase64Url(text) : 0n
  if (rest.length > 0 || position < 1n || position > MAX_POSITION || toCursor(position) !== text) {
    throw invalidRequest('cursor is none of ours')
  }
  return Number(position)
}

export function toCursor(position: bigint): string {
  return toBase64Url(numberToBytes(position, { size: 8 }))
}

function fromBase64Url(text: string): bigint {
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
  return BigInt(bytesToHex(bytes))
}

export function invalidRequest(detail: string) {
  return new ProblemFailure({ code: 'invalid_request', detail })
}
