import { concatBytes } from './bytes.ts'
import { isEd25519Key } from './ed25519.ts'
import type { Hex } from './hex.ts'
import type { Kind, SignatureKind } from './kinds.ts'
import * as preimages from './preimages.ts'
import type { TerminalProofStatus } from './proofStatus.ts'
import { toPreimage } from './tags.ts'

/* What the service tells other servers, in the form of Standard Webhooks 1.0.0: https://github.com/standard-webhooks/standard-webhooks */

type ToldProof = {
  slug: string
  kind: SignatureKind
  txHash: Hex
  /** 0 for what is signed off the chain. */
  chainId: number
  walletAddress: Hex
  ipfsCid: string | null
}

/** What `data` says for each type of event. Nothing in it is secret: no e-mail address, no session, no content. */
export type WebhookData = {
  /** The proof is public. */
  'proof.complete': ToldProof & { status: 'complete'; onchainTxHash: Hex; onchainBlockNumber: number }
  /** The proof was given up, for the reason in `failure`. */
  'proof.failed': ToldProof & { status: Exclude<TerminalProofStatus, 'complete'>; failure: string | null }
  /** Somebody signed in, with the wallet of this address. */
  'session.created': { walletAddress: Hex }
  /** A vault did not sign, for the reason in `code`. */
  'vault.refused': {
    walletAddress: Hex
    policyHash: string
    kind: Kind
    code: 'policy_refused' | 'approvals_missing' | 'approval_invalid'
  }
  /** Intel's collateral for a platform could not be renewed: when it lapses, signing ends. */
  'collateral.lapsing': { fmspc: string; ca: 'processor' | 'platform'; lapsesAt: string }
  /** The account that publishes proofs cannot pay for much more. */
  'publisher.short_of_gas': { account: Hex; chainId: number; balanceWei: string }
}

export type WebhookType = keyof WebhookData

/** The body of a webhook. `timestamp` is when it happened (ISO 8601), not when it was sent. */
export type WebhookEvent = {
  [Type in WebhookType]: { type: Type; id: string; timestamp: string; data: WebhookData[Type] }
}[WebhookType]

const PREFIX = 'whpk_'

/** An Ed25519 key as receivers are given it: `whpk_` and its 32 bytes in base64. */
export function toWebhookKeyText(key: Uint8Array): string {
  return `${PREFIX}${btoa(String.fromCharCode(...key))}`
}

/** The key of such a text; undefined for any other text, and for a key that would fit many signatures. */
export function parseWebhookKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^whpk_[A-Za-z0-9+/]{43}=$/.test(text)) return undefined
  const key = Uint8Array.from(atob(text.slice(PREFIX.length)), (character) => character.charCodeAt(0))
  return isEd25519Key(key) ? key : undefined
}

/** What a webhook's signature is over: id, seconds since 1970 and the body, with full stops between them. */
export function toWebhookMessage(parameters: {
  id: string
  timestamp: number
  body: Uint8Array
}): Uint8Array<ArrayBuffer> {
  const { id, timestamp, body } = parameters
  return concatBytes(new TextEncoder().encode(`${id}.${timestamp}.`), body)
}

/** What a coordinator signs to say that a key signs the webhooks of its service. */
export function toWebhookKeyMessage(key: Uint8Array): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.webhookKey, { key })
}
