import type { ErrorCode } from '@countersign/protocol/errorCodes'
import { type SdkErrorCode, ServiceError } from '@countersign/sdk'
import { BaseError } from 'viem'

/** A failure in the words of someone who wants to go on. */
export type Explanation = {
  title: string
  /** What to do. */
  advice: string
}

/** Only where a message or typed data is to be signed: the page for that has the words. */
export type OffChainCode =
  | 'unsupported_method'
  | 'invalid_message'
  | 'invalid_typed_data'
  | 'opening_mismatch'
  | 'message_too_large'

export const NOTHING_SIGNED = 'Nothing was signed.'

/** In the words of the people on the page; those of `errorCodes` are for whoever writes the call. */
const EXPLANATIONS: Record<Exclude<SdkErrorCode, OffChainCode>, Explanation> & Partial<Record<ErrorCode, Explanation>> =
  {
    wallet_not_ready: { title: 'The wallet is not there yet', advice: 'Wait a moment, then try again.' },
    wallet_changed: {
      title: 'Somebody else is signed in now',
      advice: `It may have happened in another tab. Load this page again to see whose wallet it is. ${NOTHING_SIGNED}`,
    },
    invalid_request: {
      title: 'The service could not use this request',
      advice: 'Check what you entered and try again. Nothing was signed.',
    },
    rpc_url_missing: {
      title: 'No way to reach the chain',
      advice: 'The host of this app must add “rpcUrl” to its config.json: this chain has no built-in one.',
    },
    network_unreachable: {
      title: 'The service cannot be reached',
      advice:
        'Check your connection and try again. If you host it: is it running, is “apiBaseUrl” in config.json right, and is this page’s origin in ALLOWED_ORIGINS?',
    },
    request_timeout: {
      title: 'The service took too long to answer',
      advice: 'Try again in a moment.',
    },
    response_invalid: {
      title: 'Something else answered in place of the service',
      advice:
        'If you host it, check “apiBaseUrl” in config.json and the proxies in between. Otherwise try again later.',
    },
    cookie_blocked: {
      title: 'Your browser did not keep the sign-in',
      advice:
        'The browser blocks the cookie because app and service are on different sites. The operator should put both under one domain, such as app.example.com and api.example.com, or forward the service’s paths from the app’s own address.',
    },
    signature_mismatch: {
      title: 'The service answered with a wrong signature',
      advice:
        'It is not this wallet’s signature over what you agreed to, so nothing was sent. Do not trust this service until its operator has explained it.',
    },
    fees_absurd: {
      title: 'The network asks for absurd fees',
      advice: `The chain’s node may be faulty. Wait, or have another one configured. ${NOTHING_SIGNED}`,
    },
    rpc_chain_mismatch: {
      title: 'The node serves another chain',
      advice: `“rpcUrl” and “chainId” in config.json do not belong together. ${NOTHING_SIGNED}`,
    },
    rpc_failed: {
      title: 'The chain’s node failed',
      advice: 'Try again in a moment. If this persists, another node must be configured.',
    },
    rpc_timeout: { title: 'The chain’s node took too long', advice: `Try again in a moment. ${NOTHING_SIGNED}` },
    rpc_nonce_too_low: {
      title: 'Another transaction of this wallet came first',
      advice: 'This one can no longer be used. If you still want the payment, send it again.',
    },
    rpc_insufficient_funds: {
      title: 'The wallet cannot pay for this',
      advice:
        'Amount and network fee together are more than the balance. The transaction is signed and public all the same: once the wallet has funds, anyone can broadcast it.',
    },
    rpc_gas_rejected: {
      title: 'The node did not accept the gas limit',
      advice: 'It is too low for this call, or more than a block takes. Change the gas limit and send again.',
    },
    rpc_underpriced: {
      title: 'The fee was too low for the node',
      advice: 'Another transaction of this wallet is probably waiting. Wait for that one, then try again.',
    },
    rpc_hash_mismatch: {
      title: 'The node named another transaction',
      advice: 'Do not trust this node. Look for the transaction below on another one before you send again.',
    },
    broadcast_unknown: {
      title: 'It is not known whether the transaction was sent',
      advice: 'Look for the transaction below in a while, before you send again: the node may have taken it.',
    },
    internal: {
      title: 'Something went wrong',
      advice: 'Try again. If this persists, tell the operator when it happened.',
    },
    not_authenticated: { title: 'You are not signed in', advice: 'Sign in and try again.' },
    session_expired: { title: 'Your session has ended', advice: 'Sign in again to go on.' },
    origin_not_allowed: {
      title: 'The service does not accept this page',
      advice: 'The host of the service must add this page’s exact origin to ALLOWED_ORIGINS.',
    },
    grant_invalid: { title: 'The enclave does not accept this session', advice: 'Sign out and in again.' },
    key_binding_mismatch: {
      title: 'The enclave says that this key is not yours',
      advice: 'Sign out and in again. If this persists, tell the operator.',
    },
    wallet_not_provisioned: {
      title: 'The wallet has not been made yet',
      advice: 'Load the page again: that makes it.',
    },
    chain_not_allowed: {
      title: 'The service does not sign for this chain',
      advice: 'The host of the service decides that, with ALLOWED_CHAIN_IDS.',
    },
    unsupported_transaction: {
      title: 'The service does not sign this kind of transaction',
      advice: 'Change it and try again. Nothing was signed.',
    },
    rate_limited: { title: 'Too many requests', advice: 'Wait a minute, then try again.' },
    quota_spent: {
      title: 'No more signatures today',
      advice: `You have used up your signatures of 24 hours. Try again later. ${NOTHING_SIGNED}`,
    },
    attestation_invalid: {
      title: 'The hardware’s evidence did not hold',
      advice: 'No signature was released. Try again; if it stays, distrust the service and tell the operator.',
    },
    signature_invalid: {
      title: 'The enclave’s signature did not hold',
      advice: 'No signature was released. Try again; if it stays, distrust the service and tell the operator.',
    },
    entropy_unavailable: {
      title: 'The satellite cannot be heard',
      advice: 'Every signature needs a fresh sample from it. Nothing was signed; try again in a moment.',
    },
    enclave_unavailable: {
      title: 'The key enclave cannot be reached',
      advice: 'Your key is safe inside it. Try again in a moment.',
    },
    collateral_stale: {
      title: 'The service cannot check its hardware right now',
      advice: 'It signs nothing until it can. Try again later.',
    },
    log_unavailable: {
      title: 'The public log cannot be reached',
      advice: 'No signature is given away before witnesses have seen it there. Nothing was; try again in a moment.',
    },
    database_unavailable: { title: 'The service has no database right now', advice: 'Try again in a moment.' },
    shutting_down: { title: 'The service is restarting', advice: 'Try again in a moment.' },
  }

/** The service may have signed, and its answer was lost on the way: the SDK says so by forbidding a retry. */
const LOST_ANSWERS = new Set(['network_unreachable', 'request_timeout', 'response_invalid', 'wallet_changed'])
const MAY_BE_SIGNED: Explanation = {
  title: 'It may have been signed',
  advice:
    'The answer of the service was lost. Wait until the history shows the payment, or does not, before you send again: a signature is public, and anyone can broadcast it.',
}
const BY_EARLIER_USER =
  'The answer was lost, and you may no longer be signed in. Sign in as yourself and look in your history before you send again.'
/** What the service says to whoever is here instead, when the SDK looks and asks again. */
const TO_ANOTHER_USER = /^(wallet_changed|wallet_not_ready|vault_not_found|not_authenticated|session_expired)$/

type Failure = Pick<ServiceError, 'code' | 'message' | 'retryable' | 'cause'>

const isLost = ({ code, retryable }: Failure) => retryable === false && LOST_ANSWERS.has(code)

/** It may have been signed, for somebody who is no longer signed in: neither the history that is read now nor its page would tell. */
export function isOfEarlierUser(error: Failure): boolean {
  const { code } = error.cause instanceof ServiceError ? error.cause : error
  return isLost(error) && TO_ANOTHER_USER.test(code)
}

/** What a failure means for the person in front of it. Codes that need no words of their own get the service's. */
export function explainError(error: Failure): Explanation {
  if (isLost(error)) return isOfEarlierUser(error) ? { ...MAY_BE_SIGNED, advice: BY_EARLIER_USER } : MAY_BE_SIGNED
  const known = Object.hasOwn(EXPLANATIONS, error.code) && EXPLANATIONS[error.code as ErrorCode]
  if (known) return known
  return {
    title: error.message === '' ? 'The service refused' : error.message,
    advice: error.retryable === true ? 'Try again in a moment.' : 'If you did nothing unusual, tell the operator.',
  }
}

/** Any failure as the SDK's error. What viem throws is the node's fault; its own text may name the node's address, with a key in it. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  if (error instanceof BaseError) {
    return new ServiceError('rpc_failed', 'the RPC failed', { details: error.details, cause: error, retryable: true })
  }
  return new ServiceError('internal', 'unexpected failure', { cause: error })
}
