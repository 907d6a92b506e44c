import { toWebhookMessage, type WebhookEvent } from '@countersign/protocol'
import { createEd25519Signer } from '@countersign/service/ed25519'

export type WebhookSigner = {
  /** 32 bytes each. */
  readonly publicKeys: readonly Uint8Array[]
  /** The request that tells an event, as of this time: the time is signed too, so that nobody can send it again much later. */
  sign(event: WebhookEvent, now: number): { headers: Record<string, string>; body: Uint8Array }
}

/** Signs by the keys of these seeds, each for itself. */
export function createWebhookSigner(seeds: readonly Uint8Array[]): WebhookSigner {
  const signers = seeds.map(createEd25519Signer)
  return {
    publicKeys: signers.map(({ publicKey }) => publicKey),
    sign(event, now) {
      const { type, id, timestamp: happenedAt, data } = event
      const body = Buffer.from(JSON.stringify({ type, id, timestamp: happenedAt, data }))
      const timestamp = Math.floor(now / 1000)
      const message = toWebhookMessage({ id, timestamp, body })
      const signatures = signers.map(({ sign }) => `v1a,${Buffer.from(sign(message)).toString('base64')}`)
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'countersign',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatures.join(' '),
      }
      return { headers, body }
    },
  }
}
