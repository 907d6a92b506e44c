import type { InspectedProof } from '../../store/proofs.ts'
import type { RetentionCount } from '../../store/retention.ts'
import type { InspectedWebhook } from '../../store/webhooks.ts'

/** What each failure means to an operator, and what to do about it. */
const advice: Readonly<Record<string, string>> = {
  pin_unavailable: 'the pin service cannot be reached or fails: look at it, and at IPFS_API_URL',
  pin_refused: 'the pin service refuses: check IPFS_API_TOKEN and the account behind it',
  pin_mismatch: 'the pin service answers another CID or other bytes: do not trust it, use another',
  pin_not_found: 'the pin service does not hold what it took: look at its storage',
  receipt_too_large: 'the receipt is larger than 256 KiB, so no pinner and no verifier takes it',
  publish_deadline: 'its time was over before it got into a transaction: look at the chain, the contract and the funds',
  publish_cancelled: 'its transaction was not mined in time, and its nonce was used up',
  publish_reverted: 'the contract refuses it, and it alone',
  publish_unconfirmed: 'its transaction was mined, but its event is not there: look at the contract and the RPC',
}

/** One sentence about where a proof is, and why it stays there. */
export function explain(proof: InspectedProof, now: number): string {
  const age = toAge(now - proof.createdAt)
  const reason = proof.failure === null ? undefined : (advice[proof.failure] ?? proof.failure)
  const because = reason === undefined ? '' : `: ${reason}`
  if (proof.status === 'pending_pin') {
    return proof.pinAttempts === 0
      ? `waits ${age} for its first pin; is a worker running?`
      : `could not be pinned ${proof.pinAttempts} times in ${age}${because}`
  }
  if (proof.status === 'pin_failed') {
    const way = proof.failure === 'receipt_too_large' ? '' : `; export it with: receipt ${proof.slug}`
    return `pin given up after ${proof.pinAttempts} attempts${because}${way}`
  }
  if (proof.status === 'onchain_failed') return `not published${because}; its receipt is at ${proof.ipfsCid}`
  if (proof.status === 'complete') return `complete, ${age} old`
  if (proof.publication === undefined) return `pinned, and waits ${age} for a publication${because}`
  const { nonce, status, transactions } = proof.publication
  const last = transactions.at(-1) ?? 'none'
  return `in publication with nonce ${nonce} (${status}), ${transactions.length} signed, the last ${last}${because}`
}

/** The same for failures of webhooks; those not here are statuses of HTTP. */
const webhookAdvice: Readonly<Record<string, string>> = {
  address_refused: 'the name of the receiver leads to an address that is not public',
  name_unknown: 'the name of the receiver has no address',
  connection_failed: 'the receiver cannot be reached, or ended the connection: look at it, and at its certificate',
  timed_out: 'the receiver did not answer in time: it should answer before it works',
  redirected: 'the receiver points elsewhere, which is never followed: set WEBHOOK_URL to where it points',
}

/** One sentence about where a webhook is, and why. */
export function explainWebhook(webhook: InspectedWebhook, now: number): string {
  const { status, attempts, failure, isActive } = webhook
  const age = toAge(now - webhook.createdAt)
  const reason = failure === null ? undefined : (webhookAdvice[failure] ?? failure)
  const because = reason === undefined ? '' : `: ${reason}`
  if (status === 'delivered') return `delivered, ${age} old`
  if (status === 'dead') {
    const advice = isActive ? `send it again with: --retry ${webhook.id}` : 'the settings name this receiver no more'
    return `given up after ${attempts} attempts in ${age}${because}; ${advice}`
  }
  if (!isActive) return `waits ${age}, but the settings name this receiver no more`
  if (attempts === 0) return `waits ${age} for its first attempt; is a worker running?`
  const next = toAge((webhook.dueAt ?? now) - now)
  return `not delivered in ${attempts} attempts and ${age}, the next in ${next}${because}`
}

function toAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

/** What an operator wants to know: what is there, what went, and how to get its space back. */
export function describeRetention({ held, dropped, databaseBytes }: RetentionCount): string {
  const lines = [
    `The database takes ${toSize(databaseBytes)} on disk.`,
    `Receipts in it: ${held.receipts}, ${toSize(held.bytes)} as they are stored.`,
    `Receipts on IPFS alone: ${dropped.receipts}, which took ${toSize(dropped.bytes)}.`,
  ]
  const all = held.bytes + dropped.bytes
  if (dropped.receipts > 0) {
    lines.push(
      `That is ${Math.round((100 * dropped.bytes) / all)} % of what all receipts would take. PostgreSQL uses the space for new rows; VACUUM FULL or pg_repack gives it back to the system.`,
    )
  }
  return lines.join('\n')
}

function toSize(bytes: number): string {
  if (bytes < 2 ** 20) return `${(bytes / 2 ** 10).toFixed(1)} KiB`
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(2)} GiB`
}
