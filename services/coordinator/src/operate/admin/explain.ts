import type { InspectedProof } from '../../store/proofs.ts'
import type { RetentionCount } from '../../store/retention.ts'
import type { InspectedWebhook } from '../../store/webhooks.ts'

/** The meaning of each failure, and what to do. */
const advice: Readonly<Record<string, string>> = {
  pin_unavailable: 'the pin service is unreachable or fails: check it and IPFS_API_URL',
  pin_refused: 'the pin service rejects the request: check IPFS_API_TOKEN and its account',
  pin_mismatch: 'the pin service returned another CID or other bytes: don’t trust it, use another one',
  pin_not_found: 'the pin service lost a receipt that it accepted: check its storage',
  receipt_too_large: 'the receipt is larger than 256 KiB, so no pinner or verifier accepts it',
  publish_deadline: 'its deadline passed before it was in a transaction: check the chain, the contract and the funds',
  publish_cancelled: 'its transaction was not mined in time and was cancelled',
  publish_reverted: 'the contract rejects this proof',
  publish_unconfirmed: 'its transaction was mined without its event: check the contract and the RPC',
}

/** Explains a proof's status in one sentence. */
export function explain(proof: InspectedProof, now: number): string {
  const age = toAge(now - proof.createdAt)
  const reason = proof.failure === null ? undefined : (advice[proof.failure] ?? proof.failure)
  const because = reason === undefined ? '' : `: ${reason}`
  if (proof.status === 'pending_pin') {
    return proof.pinAttempts === 0
      ? `has waited ${age} for its first pin; is a worker running?`
      : `${proof.pinAttempts} failed pins in ${age}${because}`
  }
  if (proof.status === 'pin_failed') {
    const way = proof.failure === 'receipt_too_large' ? '' : `; export it with: receipt ${proof.slug}`
    return `pin failed after ${proof.pinAttempts} attempts${because}${way}`
  }
  if (proof.status === 'onchain_failed') return `not published${because}; receipt ${proof.ipfsCid}`
  if (proof.status === 'complete') return `complete, ${age} old`
  if (proof.publication === undefined) return `pinned, has waited ${age} for a publication${because}`
  const { nonce, status, transactions } = proof.publication
  const last = transactions.at(-1) ?? 'none'
  return `in the publication with nonce ${nonce} (${status}), ${transactions.length} transaction(s), last ${last}${because}`
}

/** The same for webhooks. Other failures are HTTP statuses. */
const webhookAdvice: Readonly<Record<string, string>> = {
  address_refused: 'the receiver’s name resolves to an address that is not public',
  name_unknown: 'the receiver’s name has no address',
  connection_failed: 'the receiver is unreachable or closed the connection: check it and its certificate',
  timed_out: 'the receiver did not answer in time: it should answer before it processes the event',
  redirected: 'the receiver redirects, which is not followed: set WEBHOOK_URL to the target',
}

/** Explains a webhook's status in one sentence. */
export function explainWebhook(webhook: InspectedWebhook, now: number): string {
  const { status, attempts, failure, isActive } = webhook
  const age = toAge(now - webhook.createdAt)
  const reason = failure === null ? undefined : (webhookAdvice[failure] ?? failure)
  const because = reason === undefined ? '' : `: ${reason}`
  if (status === 'delivered') return `delivered, ${age} old`
  if (status === 'dead') {
    const advice = isActive ? `send it again with: --retry ${webhook.id}` : 'the settings no longer list this receiver'
    return `dead after ${attempts} attempts in ${age}${because}; ${advice}`
  }
  if (!isActive) return `has waited ${age}, but the settings no longer list this receiver`
  if (attempts === 0) return `has waited ${age} for its first attempt; is a worker running?`
  const next = toAge((webhook.dueAt ?? now) - now)
  return `${attempts} failed attempts in ${age}, next in ${next}${because}`
}

function toAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

/** Says what receipts take, how many were dropped, and how to reclaim the space. */
export function describeRetention({ held, dropped, databaseBytes }: RetentionCount): string {
  const lines = [
    `The database uses ${toSize(databaseBytes)} on disk.`,
    `Receipts in the database: ${held.receipts}, ${toSize(held.bytes)}.`,
    `Receipts only on IPFS: ${dropped.receipts}, which used ${toSize(dropped.bytes)}.`,
  ]
  const all = held.bytes + dropped.bytes
  if (dropped.receipts > 0) {
    lines.push(
      `That is ${Math.round((100 * dropped.bytes) / all)} % of the space of all receipts. PostgreSQL reuses it for new rows. VACUUM FULL or pg_repack returns it to the system.`,
    )
  }
  return lines.join('\n')
}

function toSize(bytes: number): string {
  if (bytes < 2 ** 20) return `${(bytes / 2 ** 10).toFixed(1)} KiB`
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(2)} GiB`
}
