import { ServiceError } from '@countersign/protocol'
import { callRpc, findRefusal } from '../client/rpc.ts'

/** The provider's own codes, from EIP-1193, EIP-1474, EIP-3326, EIP-5792 and JSON-RPC. A node's error keeps its code. */
export const eip1193Codes = {
  userRejected: 4001,
  unauthorized: 4100,
  unsupportedMethod: 4200,
  disconnected: 4900,
  chainDisconnected: 4901,
  unrecognizedChain: 4902,
  unsupportedCapability: 5700,
  unsupportedChain: 5710,
  duplicateId: 5720,
  unknownBatch: 5730,
  batchTooLarge: 5740,
  notAtomic: 5760,
  transactionRejected: -32003,
  invalidParams: -32602,
  internal: -32603,
} as const

/**
 * The error of a provider's request: EIP-1193's `ProviderRpcError`. `cause` may be a `ServiceError`.
 *
 * @example
 * if (error instanceof Eip1193Error && error.code === 4100) location.assign(client.loginUrl())
 */
export class Eip1193Error extends Error {
  override name = 'Eip1193Error'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, options: { cause?: unknown; data?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.data = options.data
  }
}

export function invalidParams(message: string, cause?: unknown) {
  return new Eip1193Error(eip1193Codes.invalidParams, message, { cause })
}

const UNREACHABLE = ['network_unreachable', 'request_timeout']
const RPC_UNREACHABLE = ['rpc_timeout', 'rpc_url_missing', 'rpc_chain_mismatch']
const INVALID = [
  'invalid_request',
  'invalid_tx_metadata',
  'invalid_message',
  'invalid_typed_data',
  'unsupported_transaction',
  'chain_not_allowed',
]

export function toEip1193Error(error: unknown): Eip1193Error {
  if (error instanceof Eip1193Error) return error
  if (error instanceof ServiceError) {
    const message = error.details === undefined ? error.message : `${error.message}: ${error.details}`
    return new Eip1193Error(toCode(error), message, { cause: error })
  }
  return new Eip1193Error(eip1193Codes.internal, 'the request failed', { cause: error })
}

function toCode({ code, status }: ServiceError): number {
  // A session without this browser's key can't sign: the user has to sign in again.
  if (status === 401 || code === 'wallet_not_ready' || code === 'session_not_bound') return eip1193Codes.unauthorized
  if (UNREACHABLE.includes(code)) return eip1193Codes.disconnected
  if (RPC_UNREACHABLE.includes(code)) return eip1193Codes.chainDisconnected
  return INVALID.includes(code) ? eip1193Codes.invalidParams : eip1193Codes.internal
}

/**
 * The error after the user was asked: -32003, except for the user's refusal and a missing session. viem repeats a request that failed
 * with -32603, and retries under another name after -32602. Either would ask or sign a second time.
 */
export function toRejection(error: unknown): Eip1193Error {
  const failure = toEip1193Error(error)
  if (failure.code === eip1193Codes.userRejected || failure.code === eip1193Codes.unauthorized) return failure
  return new Eip1193Error(eip1193Codes.transactionRejected, failure.message, { cause: failure.cause })
}

export async function callNode<R>(question: () => Promise<R>): Promise<R> {
  return callRpc(question).catch((error: unknown) => {
    throw toNodeError(error)
  })
}

/** Keeps the node's own message, and the data of a revert. */
function toNodeError(error: unknown): Eip1193Error {
  const cause = error instanceof ServiceError ? error.cause : error
  const refusal = findRefusal(cause)
  if (refusal !== null) return new Eip1193Error(refusal.code, refusal.details, { cause, data: refusal.data })
  if (error instanceof ServiceError && error.code !== 'rpc_failed') return toEip1193Error(error)
  return new Eip1193Error(eip1193Codes.chainDisconnected, 'the RPC cannot be reached', { cause: error })
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof Eip1193Error && error.code === eip1193Codes.unauthorized
}
