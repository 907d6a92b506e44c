import {
  type Authorization,
  assertAuthorizationAllowed,
  type Hex,
  hashContent,
  hashUnsignedTransaction,
  isPlainObject,
  isPrefixedHex,
  type OffChainContent,
  parseAuthorization,
  parseJson,
  parseTxMetadata,
  ServiceError,
  type SignDigestRequest,
  toPrefixedHex,
  type WalletUse,
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

/** For `parseRequest` of the protocol. */
export function invalidBody(code: TestProblemCode, detail: string) {
  return new ProblemFailure({ code, detail })
}

/** An empty list of approvals counts as none. */
export function parseWalletUse({ wallet, rule, approvals, stamp }: WalletUse): WalletUse {
  if (wallet === undefined && approvals !== undefined) throw invalidRequest('approvals are for a vault')
  if (wallet === undefined && rule !== undefined) throw invalidRequest('rule is for a vault')
  return { wallet: toLowerCase(wallet), rule, approvals: approvals?.length === 0 ? undefined : approvals, stamp }
}

export function parseAddress(text: string | undefined): Hex {
  if (isPrefixedHex(text, 20)) return toLowerCase(text)
  throw invalidRequest('wallet is not an address')
}

export function toLowerCase<Text extends string | undefined>(hex: Text): Text {
  return hex?.toLowerCase() as Text
}

export function parseTransaction(request: SignDigestRequest): SignDigestRequest {
  const txMetadata = parseTxMetadata(request.txMetadata)
  const digest = toLowerCase(request.digest)
  if (toPrefixedHex(hashUnsignedTransaction(txMetadata)) !== digest) {
    throw new ProblemFailure({ code: 'digest_mismatch' })
  }
  return { digest, txMetadata }
}

export function hashOffChain(content: OffChainContent): Hex {
  return toPrefixedHex(asProblem(() => hashContent(content)))
}

export function parseAllowed(given: Authorization, implementations: readonly Hex[]): Authorization {
  return asProblem(() => {
    assertAuthorizationAllowed(given, implementations)
    return parseAuthorization(given)
  })
}

/** The protocol's errors as the service returns them. */
function asProblem<R>(parse: () => R): R {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ServiceError) || !Object.hasOwn(errorCodes, error.code)) throw error
    throw new ProblemFailure({ code: error.code as TestProblemCode, detail: error.details })
  }
}

export function parseLimit([text, ...rest]: readonly string[]): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : Number.NaN
  if (rest.length > 0 || !(limit <= MAX_LIMIT)) throw invalidRequest(`limit is not an integer from 1 to ${MAX_LIMIT}`)
  return limit
}

/** How many of the oldest signatures come after the cursor's position. */
export function parseCursor([text, ...rest]: readonly string[]): number | undefined {
  if (text === undefined) return undefined
  const position = /^[A-Za-z0-9_-]{11}$/.test(text) ? fromBase64Url(text) : 0n
  if (rest.length > 0 || position < 1n || position > MAX_POSITION || toCursor(position) !== text) {
    throw invalidRequest('invalid cursor')
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
  return invalidBody('invalid_request', detail)
}
