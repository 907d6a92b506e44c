import { generateKeyPairSync, sign } from 'node:crypto'
import {
  type CoordinatorAttestation,
  fromHex,
  parseWebhookKey,
  toWebhookKeyMessage,
  verifyEd25519,
} from '@countersign/protocol'
import { ServiceError, verifyWebhook, type WebhookEvent } from '@countersign/sdk/webhooks'
import type { Query } from '../openQuery.ts'
import type { Captured } from './receiver.ts'

/** Reads the causes of events from the database. */
export async function readCauses(query: Query): Promise<string[]> {
  const proofs = await query<{ slug: string; status: string }>(
    `select slug, status from proofs where status in ('complete', 'pin_failed', 'onchain_failed')`,
  )
  const sessions = await query<{ address: string; created_at: Date }>(
    `select '0x' || encode(address, 'hex') as address, created_at from sessions`,
  )
  return [
    ...proofs.map(({ slug, status }) => `${status} ${slug}`),
    ...sessions.map(({ address, created_at }) => `signed in ${address} ${created_at.toISOString()}`),
  ]
}

/** The cause of an event; undefined for an event that this trial can't cause. */
function toCause(event: WebhookEvent): string | undefined {
  if (event.type === 'proof.complete' || event.type === 'proof.failed') return `${event.data.status} ${event.data.slug}`
  if (event.type === 'session.created') return `signed in ${event.data.walletAddress} ${event.timestamp}`
  return undefined
}

/** Compares causes with events: reports missing events, events with a second id for one cause, and events without a cause. */
export function compareCauses(causes: readonly string[], events: Iterable<WebhookEvent>): string[] {
  const open = new Map<string, number>()
  for (const cause of causes) open.set(cause, (open.get(cause) ?? 0) + 1)
  const faults: string[] = []
  for (const event of events) {
    const cause = toCause(event)
    const left = cause === undefined ? 0 : (open.get(cause) ?? 0)
    if (cause === undefined || left === 0) faults.push(`no cause for event ${event.type} ${event.id}`)
    else open.set(cause, left - 1)
  }
  for (const [cause, left] of open) if (left > 0) faults.push(`never delivered: ${cause}`)
  return faults
}

/** The webhook keys that a coordinator publishes. Verifies that the attested key signed each one. */
export async function readKeys(url: string): Promise<string[]> {
  const { webhookKeys, publicKey } = (await (await fetch(`${url}/health/attestation`)).json()) as CoordinatorAttestation
  return (webhookKeys ?? []).map(({ key, signature }) => {
    const bytes = parseWebhookKey(key) ?? new Uint8Array()
    if (!verifyEd25519(fromHex(publicKey), fromHex(signature), toWebhookKeyMessage(bytes))) {
      throw new Error('webhook key not signed by the attested key')
    }
    return key
  })
}

/** Verifies each captured request again, forged and replayed in every known way. */
export async function attack(
  captured: readonly Captured[],
  keys: readonly string[],
): Promise<{ forged: number; replayed: number; faults: string[] }> {
  const otherKey = generateKeyPairSync('ed25519').privateKey
  const faults: string[] = []
  let [forged, replayed] = [0, 0]
  const verify = async (name: string, parameters: Captured & { now?: number }, code: string) => {
    const { headers, body, now = 1000 * Number(headers['webhook-timestamp']) } = parameters
    const seen = code === 'webhook_replayed' ? () => true : () => false
    const result = await verifyWebhook({ headers, body, keys, now, seen }).then(
      () => 'accepted',
      (error) => (error instanceof ServiceError ? error.code : String(error)),
    )
    if (result !== code) faults.push(`${name}: ${result}`)
  }
  for (const { headers, body } of captured) {
    const id = headers['webhook-id'] ?? ''
    const seconds = Number(headers['webhook-timestamp'])
    const change = (name: string, value: string) => ({ headers: { ...headers, [name]: value }, body })
    const byOtherKey = sign(undefined, Buffer.from(`${id}.${seconds}.${body}`), otherKey).toString('base64')
    await verify(
      'another body',
      { headers, body: body.replace(/"0x(.)/, (_, digit) => `"0x${digit === '0' ? '1' : '0'}`) },
      'webhook_forged',
    )
    await verify('another id', change('webhook-id', `${id}0`), 'webhook_forged')
    await verify('another time', change('webhook-timestamp', String(seconds + 1)), 'webhook_forged')
    await verify('another key', change('webhook-signature', `v1a,${byOtherKey}`), 'webhook_forged')
    await verify('no signature', change('webhook-signature', ''), 'webhook_forged')
    forged += 5
    await verify('replayed', { headers, body }, 'webhook_replayed')
    await verify('replayed after it expired', { headers, body, now: 1000 * (seconds + 301) }, 'webhook_expired')
    replayed += 2
  }
  return { forged, replayed, faults }
}
