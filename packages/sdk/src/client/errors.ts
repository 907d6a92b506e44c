import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/**
 * The SDK's own codes, each with what the caller should do. Errors of the service keep the service's code and have a `status`.
 * If an error has `signed`, the signature is public and anyone can broadcast it: look for `signed.txHash` before you send again.
 */
export type SdkErrorCode =
  /** Wait for `useWallet().wallet`, or call `api.provisionWallet`. Nothing was sent. */
  | 'wallet_not_ready'
  /**
   * Call `refresh`: another user has signed in, perhaps in another tab. No vault was created for this user, and nothing was signed,
   * unless `details` says that it may have been signed. Then look in `api.listTransactions` of the first user.
   */
  | 'wallet_changed'
  /** Fix the field that `details` names. Nothing was sent. */
  | 'invalid_request'
  /** Pass text without lone surrogates, or bytes or their hex. Nothing was sent. */
  | 'invalid_message'
  /** Fix the typed data: it is ambiguous under EIP-712, or for another chain. Nothing was sent. */
  | 'invalid_typed_data'
  /** Set `rpcUrl`: this chain has no built-in RPC. */
  | 'rpc_url_missing'
  /**
   * Retry when the network is back. Check `apiBaseUrl` and that the service allows the page's origin. If `details` says that it may
   * have been signed, look in `api.listTransactions` before you send again. If it says to reload the page, a part of the app could
   * not be loaded and nothing was sent.
   */
  | 'network_unreachable'
  /** Retry: the service timed out. With "may have been signed" in `details`, act as for `network_unreachable`. */
  | 'request_timeout'
  /** Check `apiBaseUrl`: another server or a proxy answered. */
  | 'response_invalid'
  /** Host app and service on one site: the browser blocked the session cookie. */
  | 'cookie_blocked'
  /** Don't trust the service: the signature doesn't belong to this wallet and request. The SDK did not broadcast it. */
  | 'signature_mismatch'
  /** Don't trust the service, or find the right opening: this one doesn't match the proof. */
  | 'opening_mismatch'
  /** Wait or use another RPC: the fees exceed the limit. Nothing was signed. */
  | 'fees_absurd'
  /** Fix `rpcUrl` or `chainId`: the RPC serves another chain. Nothing was signed. */
  | 'rpc_chain_mismatch'
  /** Retry, or use another RPC: it failed or sent an invalid answer. With `signed`, look for `signed.txHash` first. */
  | 'rpc_failed'
  /** Retry, or use another RPC: it timed out. Nothing was signed. */
  | 'rpc_timeout'
  /** Another transaction used this nonce. Send again if you still want the payment. */
  | 'rpc_nonce_too_low'
  /** Fund the wallet: it cannot pay value and fees. */
  | 'rpc_insufficient_funds'
  /** Raise `gas`, or lower it below the block's limit. */
  | 'rpc_gas_rejected'
  /** Wait for the pending transaction with this nonce: the fees are too low to be accepted or to replace it. */
  | 'rpc_underpriced'
  /** Don't trust the RPC: it returned another transaction's hash. Look for `signed.txHash`. */
  | 'rpc_hash_mismatch'
  /** Look for `signed.txHash` before you send again: the RPC may have accepted the transaction. */
  | 'broadcast_unknown'
  /** Send an EIP-1559 transaction of the client's chain, with a recipient and without an access list. Nothing was signed. */
  | 'unsupported_transaction'
  /** Sign a transaction, a message or typed data (version 4). The wallet never signs a bare hash. */
  | 'unsupported_method'
  /** Sign in again: the session has no key, or this browser doesn't have it. Nothing was signed. */
  | 'session_not_bound'
  /** Offer a cookie session: this browser can't store a key, as in some private windows. */
  | 'client_key_unavailable'
  /** Set the clock of this device: it differs from the service's by more than 10 minutes. Nothing was signed. */
  | 'clock_wrong'
  /** Sign in again: the identity provider's answer is not for a sign-in that this page started in the last 10 minutes. */
  | 'sign_in_failed'
  /** Don't trust the service, and send nothing to the address: it belongs to someone else, or has other rules. */
  | 'owner_mismatch'
  /** Send nothing to the address yet: its proof doesn't hold, or can't be checked now. With `retryable`, try again. */
  | 'address_not_verified'
  /** Report it: a bug in the SDK. See `cause`. */
  | 'internal'

/** The specification fixes some messages to be the code. */
export function createError(code: SdkErrorCode, message: string, options?: ServiceErrorOptions) {
  return new ServiceError<SdkErrorCode>(code, message, options)
}

export function walletNotReady() {
  return createError('wallet_not_ready', 'wallet_not_ready')
}

/** Gives state and rejections one type. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  return createError('internal', 'a bug', { cause: error })
}

/** Fields of other transaction types than EIP-1559. */
const UNSUPPORTED_FIELDS = [
  'gasPrice',
  'maxFeePerBlobGas',
  'blobs',
  'blobVersionedHashes',
  'sidecars',
  'authorizationList',
]

/** The error for a transaction with a field of another type; undefined if it has none. */
export function findUnsupportedField(transaction: object) {
  const [name] =
    Object.entries(transaction).find(([key, value]) => UNSUPPORTED_FIELDS.includes(key) && value != null) ?? []
  return name && unsupportedTransaction(`${name} belongs to another type of transaction than EIP-1559`)
}

export function unsupportedTransaction(reason: string) {
  return createError('unsupported_transaction', `the service does not sign this transaction: ${reason}`)
}
