import type { ErrorCode } from '@countersign/protocol/errorCodes'
import { type SdkErrorCode, ServiceError } from '@countersign/sdk'
import { BaseError } from 'viem'

export type Explanation = {
  title: string
  advice: string
}

/** Only occur when signing a message or typed data. That page explains them. */
export type OffChainCode =
  | 'unsupported_method'
  | 'invalid_message'
  | 'invalid_typed_data'
  | 'opening_mismatch'
  | 'message_too_large'

export const NOTHING_SIGNED = 'Nothing was signed.'

/** Words for users. `errorCodes` has words for developers. */
const EXPLANATIONS: Record<Exclude<SdkErrorCode, OffChainCode>, Explanation> & Partial<Record<ErrorCode, Explanation>> =
  {
    wallet_not_ready: { title: 'Your wallet isn’t ready yet', advice: 'Wait a moment, then try again.' },
    wallet_changed: {
      title: 'A different user is signed in',
      advice: `They may have signed in from another tab. ${NOTHING_SIGNED} Reload the page to see their wallet.`,
    },
    invalid_request: {
      title: 'Invalid request',
      advice: 'Nothing was signed. Check your input and try again.',
    },
    rpc_url_missing: {
      title: 'No RPC URL configured',
      advice: 'This chain has no default node. The host of this app must add “rpcUrl” to config.json.',
    },
    network_unreachable: {
      title: 'The service is unavailable',
      advice:
        'Check your connection and try again. If you host the service, check that it’s running, that “apiBaseUrl” in config.json is correct, and that ALLOWED_ORIGINS includes this page.',
    },
    request_timeout: {
      title: 'The service took too long to respond',
      advice: 'Try again in a moment.',
    },
    response_invalid: {
      title: 'Unexpected response',
      advice: 'Try again later. If you host the service, check “apiBaseUrl” in config.json and your proxies.',
    },
    cookie_blocked: {
      title: 'Your browser blocked the sign-in cookie',
      advice:
        'The app and the service are on different sites. The operator should put both under one domain, such as app.example.com and api.example.com, or forward the service’s paths from the app’s address.',
    },
    session_not_bound: {
      title: 'Please sign in again',
      advice: `This browser doesn’t have the key of your session. ${NOTHING_SIGNED}`,
    },
    client_key_unavailable: {
      title: 'This browser can’t store a key',
      advice: 'You can sign in with a cookie instead, or use another browser or a normal window.',
    },
    clock_wrong: {
      title: 'The clock of this device is wrong',
      advice: `Set the date and time, then try again. ${NOTHING_SIGNED}`,
    },
    sign_in_failed: {
      title: 'The sign-in failed',
      advice: 'Sign in again. If this keeps happening, don’t trust this service.',
    },
    stamp_missing: {
      title: 'Please sign in again',
      advice: `This tab uses a session without the browser’s key. Sign out, then sign in again. ${NOTHING_SIGNED}`,
    },
    owner_mismatch: {
      title: 'This address isn’t yours',
      advice:
        'Don’t send anything to it: according to its proof, it belongs to someone else or has other rules. Tell the operator, and don’t trust this service until they explain why.',
    },
    address_not_verified: {
      title: 'The address couldn’t be checked',
      advice:
        'This page shows the address once it has verified that it’s yours. Check again in a minute. If it keeps failing, tell the operator.',
    },
    signature_mismatch: {
      title: 'The service returned a wrong signature',
      advice:
        'Nothing was sent, because it isn’t this wallet’s signature for your payment. Don’t trust this service until the operator explains why.',
    },
    fees_absurd: {
      title: 'Network fees are unusually high',
      advice: `${NOTHING_SIGNED} The node may be faulty. Try again later, or ask the operator to configure another node.`,
    },
    rpc_chain_mismatch: {
      title: 'Wrong chain',
      advice: `${NOTHING_SIGNED} The node at “rpcUrl” in config.json serves a different chain than “chainId”.`,
    },
    rpc_failed: {
      title: 'The node returned an error',
      advice: 'Try again in a moment. If this keeps happening, ask the operator to configure another node.',
    },
    rpc_timeout: { title: 'The node took too long to respond', advice: `Try again in a moment. ${NOTHING_SIGNED}` },
    rpc_nonce_too_low: {
      title: 'Another transaction was sent first',
      advice: 'This one is no longer valid. To pay anyway, send it again.',
    },
    rpc_insufficient_funds: {
      title: 'Insufficient funds',
      advice:
        'The amount plus the network fee exceeds the balance. The signed transaction is public, so anyone can send it once the wallet has enough funds.',
    },
    rpc_gas_rejected: {
      title: 'The node rejected the gas limit',
      advice: 'It’s too low for this call or above the block’s limit. Change it and send again.',
    },
    rpc_underpriced: {
      title: 'The network fee was too low',
      advice: 'Another transaction of this wallet is probably pending. Wait for it, then try again.',
    },
    rpc_hash_mismatch: {
      title: 'The node returned a different transaction',
      advice: 'Don’t trust this node. Look up the transaction below on another node before you send again.',
    },
    broadcast_unknown: {
      title: 'The transaction may have been sent',
      advice: 'Check later whether the transaction below went through before you send again.',
    },
    internal: {
      title: 'Something went wrong',
      advice: 'Try again. If this keeps happening, tell the operator when it occurred.',
    },
    not_authenticated: { title: 'You’re not signed in', advice: 'Sign in and try again.' },
    session_expired: { title: 'Your session has ended', advice: 'Sign in again to continue.' },
    origin_not_allowed: {
      title: 'The service doesn’t allow this page',
      advice: 'The operator must add this page’s origin to ALLOWED_ORIGINS.',
    },
    grant_invalid: { title: 'The enclave rejected your session', advice: 'Sign out, then sign in again.' },
    key_binding_mismatch: {
      title: 'The enclave rejected your account for this key',
      advice: 'Sign out, then sign in again. If this keeps happening, tell the operator.',
    },
    wallet_not_provisioned: {
      title: 'You don’t have a wallet yet',
      advice: 'Reload the page to create your wallet.',
    },
    chain_not_allowed: {
      title: 'Unsupported chain',
      advice: 'The operator must add this chain to ALLOWED_CHAIN_IDS.',
    },
    unsupported_transaction: {
      title: 'Unsupported transaction',
      advice: 'Nothing was signed. Change the transaction and try again.',
    },
    rate_limited: { title: 'Too many requests', advice: 'Wait a minute, then try again.' },
    quota_spent: {
      title: 'You’ve reached today’s signing limit',
      advice: `${NOTHING_SIGNED} The limit covers 24 hours. Try again later.`,
    },
    attestation_invalid: {
      title: 'The hardware evidence is invalid',
      advice:
        'No signature was released. Try again. If this keeps happening, don’t trust this service, and tell the operator.',
    },
    signature_invalid: {
      title: 'The enclave’s signature is invalid',
      advice:
        'No signature was released. Try again. If this keeps happening, don’t trust this service, and tell the operator.',
    },
    entropy_unavailable: {
      title: 'The randomness source is unavailable',
      advice: 'Every signature needs a fresh random sample. Nothing was signed. Try again in a moment.',
    },
    enclave_unavailable: {
      title: 'The key enclave is unavailable',
      advice: 'Your key is safe. Try again in a moment.',
    },
    collateral_stale: {
      title: 'The service can’t verify its hardware right now',
      advice: 'Signing is paused until it can. Try again later.',
    },
    log_unavailable: {
      title: 'The public log is unavailable',
      advice: 'Signatures are released only after witnesses confirm them. Nothing was signed. Try again in a moment.',
    },
    database_unavailable: { title: 'The service’s database is unavailable', advice: 'Try again in a moment.' },
    shutting_down: { title: 'The service is restarting', advice: 'Try again in a moment.' },
  }

/** With these codes and `retryable: false`, the SDK reports a lost response: the service may have signed. */
const LOST_ANSWERS = new Set(['network_unreachable', 'request_timeout', 'response_invalid', 'wallet_changed'])
const MAY_BE_SIGNED: Explanation = {
  title: 'This may have been signed',
  advice:
    'The service’s response was lost. Wait a moment and check your history before you send again. If the payment was signed, its signature is public and anyone can send it.',
}
const BY_EARLIER_USER =
  'The service’s response was lost, and you may no longer be signed in. Sign in to your own account and check your history before you send again.'
/** Errors when the SDK asks again and a different user, or none, is signed in. */
const TO_ANOTHER_USER = /^(wallet_changed|wallet_not_ready|vault_not_found|not_authenticated|session_expired)$/

type Failure = Pick<ServiceError, 'code' | 'message' | 'retryable' | 'cause'>

const isLost = ({ code, retryable }: Failure) => retryable === false && LOST_ANSWERS.has(code)

/** Whether it may have been signed for a user who is no longer signed in. The current history wouldn't show it. */
export function isOfEarlierUser(error: Failure): boolean {
  const { code } = error.cause instanceof ServiceError ? error.cause : error
  return isLost(error) && TO_ANOTHER_USER.test(code)
}

/** Explains an error to the user. Unknown codes use the service's own words. */
export function explainError(error: Failure): Explanation {
  if (isLost(error)) return isOfEarlierUser(error) ? { ...MAY_BE_SIGNED, advice: BY_EARLIER_USER } : MAY_BE_SIGNED
  const known = Object.hasOwn(EXPLANATIONS, error.code) && EXPLANATIONS[error.code as ErrorCode]
  if (known) return known
  return {
    title: error.message === '' ? 'The service rejected the request' : error.message,
    advice: error.retryable === true ? 'Try again in a moment.' : 'If this is unexpected, tell the operator.',
  }
}

/** Converts any error to a `ServiceError`. viem's errors come from the node, and their text may contain the node's URL with a key. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  if (error instanceof BaseError) {
    return new ServiceError('rpc_failed', 'the RPC failed', { details: error.details, cause: error, retryable: true })
  }
  return new ServiceError('internal', 'unexpected failure', { cause: error })
}
