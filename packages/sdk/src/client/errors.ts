import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/**
 * The codes of the SDK itself, each with what the caller should do. A failure that the service reports keeps
 * the service's own code and has a `status`. One rule holds for every error with `signed`: the signature is public, anyone can
 * broadcast it, so look for `signed.txHash` before sending again.
 */
export type SdkErrorCode =
  /** Wait until `useWallet().wallet` is there, or call `api.provisionWallet`; nothing was sent. */
  | 'wallet_not_ready'
  /**
   * Call `refresh`: another user is signed in now, perhaps in another tab. No vault was made for this user, and nothing was signed,
   * unless `details` says that it may have been: then as under `network_unreachable`, with the history of the user who asked.
   */
  | 'wallet_changed'
  /** Fix the call: a field of the request cannot be used; nothing was sent. `details` names it. */
  | 'invalid_request'
  /** Fix the call: it is neither text without lone surrogates, nor bytes or their hex; nothing was sent. */
  | 'invalid_message'
  /** Fix the call: EIP-712 has no one reading of it, or it is for another chain; nothing was sent. */
  | 'invalid_typed_data'
  /** Fix the configuration: this chain has no built-in RPC, so `rpcUrl` is needed. */
  | 'rpc_url_missing'
  /**
   * Retry when the network is back; check `apiBaseUrl` and that the page's origin is on the service's allow-list. Where
   * `details` says that it may have been signed, look in `api.listTransactions` before sending again; where it says to reload the
   * page, a part of the app could not be loaded, and nothing was sent.
   */
  | 'network_unreachable'
  /** Retry: the service did not answer in time. With "may have been signed" in `details`, as under `network_unreachable`. */
  | 'request_timeout'
  /** Check `apiBaseUrl`: what answered is not this service, or something on the way replaced the answer. */
  | 'response_invalid'
  /** Host app and service on one site: the browser kept no session cookie. */
  | 'cookie_blocked'
  /** Distrust the service: the signature is not of this wallet over this request. It was not broadcast from here. */
  | 'signature_mismatch'
  /** Distrust the service, or look for the right opening: it does not open this proof. */
  | 'opening_mismatch'
  /** Distrust the RPC, or wait: the fees are absurd. Nothing was signed. */
  | 'fees_absurd'
  /** Fix `rpcUrl` or `chainId`: the RPC serves another chain. Nothing was signed. */
  | 'rpc_chain_mismatch'
  /** Retry, or use another RPC: it refused, or answered nonsense. With `signed` set, look for `signed.txHash` first. */
  | 'rpc_failed'
  /** Retry, or use another RPC: it did not answer in time. Nothing was signed. */
  | 'rpc_timeout'
  /** Another transaction took this nonce. Send again if the payment is still wanted. */
  | 'rpc_nonce_too_low'
  /** Fund the wallet: it cannot pay value and fees. */
  | 'rpc_insufficient_funds'
  /** Raise `gas`, or lower it below the limit of a block. */
  | 'rpc_gas_rejected'
  /** Wait for the pending transaction with this nonce: fees are too low to be taken, or to replace it. */
  | 'rpc_underpriced'
  /** Distrust the RPC: it named another hash than that of the transaction it was given. Look for `signed.txHash`. */
  | 'rpc_hash_mismatch'
  /** Do not send again blindly: the RPC may have taken the transaction. Look for `signed.txHash` first. */
  | 'broadcast_unknown'
  /** Send an EIP-1559 transaction of the client's chain, with a recipient and without an access list. Nothing was signed. */
  | 'unsupported_transaction'
  /** Sign a transaction, a message or typed data (version 4): a bare hash is never signed. */
  | 'unsupported_method'
  /** Report it: an unexpected failure inside the SDK; see `cause`. */
  | 'internal'

/** A failure of the SDK itself. The message is the code where the specification fixes it, else a short sentence. */
export function createError(code: SdkErrorCode, message: string, options?: ServiceErrorOptions) {
  return new ServiceError<SdkErrorCode>(code, message, options)
}

export function walletNotReady() {
  return createError('wallet_not_ready', 'wallet_not_ready')
}

/** Any thrown thing as a `ServiceError`, so that state and rejections have one type. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  return createError('internal', 'unexpected failure', { cause: error })
}

/** What transactions of other types than EIP-1559 carry. */
const FOREIGN = ['gasPrice', 'maxFeePerBlobGas', 'blobs', 'blobVersionedHashes', 'sidecars', 'authorizationList']

/** The failure of a transaction that carries what belongs to another type; undefined if it carries nothing of the kind. */
export function findForeign(transaction: object) {
  const [name] = Object.entries(transaction).find(([key, value]) => FOREIGN.includes(key) && value != null) ?? []
  return name && unsupportedTransaction(`${name} belongs to another type of transaction than EIP-1559`)
}

export function unsupportedTransaction(reason: string) {
  return createError('unsupported_transaction', `the service does not sign this transaction: ${reason}`)
}
