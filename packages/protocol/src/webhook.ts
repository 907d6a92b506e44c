import { concatBytes } from './bytes.ts'
import { isEd25519Key } from './ed25519.ts'
import type { Hex } from './hex.ts'
import type { Kind, SignatureKind } from './kinds.ts'
import * as preimages from './preimages.ts'
import type { TerminalProofStatus } from './proofStatus.ts'
import { toPreimage } from './tags.ts'

/*
 * Events that the service sends to other servers, in the form of Standard Webhooks 1.0.0:
 * https://github.com/standard-webhooks/standard-webhooks
 */

type ProofEvent = {
  slug: string
  kind: SignatureKind
  txHash: Hex
  /** 0 for an off-chain signature. */
  chainId: number
  walletAddress: Hex
  ipfsCid: string | null
}

/** `data` of each type of event. It has nothing secret: no e-mail address, session or content. */
export type WebhookData = {
  /** The proof is public. */
  'proof.complete': ProofEvent & { status: 'complete'; onchainTxHash: Hex; onchainBlockNumber: number }
  /** The proof failed, for the reason in `failure`. */
  'proof.failed': ProofEvent & { status: Exclude<TerminalProofStatus, 'complete'>; failure: string | null }
  /** A user signed in, with the wallet of this address. */
  'session.created': { walletAddress: Hex }
  /** A vault refused to sign, for the reason in `code`. */
  'vault.refused': {
    walletAddress: Hex
    policyHash: string
    kind: Kind
    code: 'policy_refused' | 'approvals_missing' | 'approval_invalid' | 'budget_exceeded'
  }
  /** Renewing Intel's collateral for a platform failed. When it expires, signing stops. */
  'collateral.lapsing': { fmspc: string; ca: 'processor' | 'platform'; lapsesAt: string }
  /** The balance of the account that publishes proofs is low. */
  'publisher.short_of_gas': { account: Hex; chainId: number; balanceWei: string }
}

export type WebhookType = keyof WebhookData

/** The body of a webhook. `timestamp` is when it happened (ISO 8601), not when it was sent. */
export type WebhookEvent = {
  [Type in WebhookType]: { type: Type; id: string; timestamp: string; data: WebhookData[Type] }
}[WebhookType]

const PREFIX = 'whpk_'

/** An Ed25519 key in the form for receivers: `whpk_` and its 32 bytes in base64. */
export function toWebhookKeyText(key: Uint8Array): string {
  return `${PREFIX}${btoa(String.fromCharCode(...key))}`
}

/** Parses such a text. Returns undefined for other text, and for a key of small order. */
export function parseWebhookKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^whpk_[A-Za-z0-9+/]{43}=$/.test(text)) return undefined
  const key = Uint8Array.from(atob(text.slice(PREFIX.length)), (character) => character.charCodeAt(0))
  return isEd25519Key(key) ? key : undefined
}

/** The message that a webhook's signature covers: ID, seconds since 1970 and the body, joined by full stops. */
export function toWebhookMessage(parameters: {
  id: string
  timestamp: number
  body: Uint8Array
}): Uint8Array<ArrayBuffer> {
  const { id, timestamp, body } = parameters
  return concatBytes(new TextEncoder().encode(`${id}.${timestamp}.`), body)
}

/** The message that a coordinator signs to certify a key for the webhooks of its service. */
export function toWebhookKeyMessage(key: Uint8Array): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.webhookKey, { key })
}
