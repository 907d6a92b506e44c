import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { toWebhookMessage, type WebhookEvent } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { createEd25519Signer } from '@countersign/service/ed25519'
import type { DueWebhook, WebhookStore } from '../../store/webhooks.ts'
import type { Clock } from '../../system.ts'
import { toReason } from '../../toReason.ts'
import { toBackoffMs } from '../repeat.ts'
import { createLookup, postWebhook, WebhookFailure } from './postWebhook.ts'
import type { WebhookConfig } from './readWebhooks.ts'

/** Metrics of webhooks: the outcome of each attempt. */
export type WebhookMetrics = { observeWebhook(receiver: string, outcome: 'delivered' | 'failed' | 'dead'): void }

type StartWebhooksDeps = {
  store: WebhookStore
  clock: Clock
  log: Log
  metrics: WebhookMetrics
  config: WebhookConfig | undefined
  post?: typeof postWebhook
}

export type Webhooks = { stop(): Promise<void> }

/** Concurrent deliveries per receiver, so that a receiver that hangs doesn't delay the others. */
const MAX_CONCURRENT = 32
const POLL_MS = 500
/** Added to the request's time limit, so that its outcome can be recorded. */
const LEASE_MARGIN_MS = 10_000
const MAX_BACKOFF_MS = 14_400_000
const TIDY_EVERY_MS = 60_000
const DAY_MS = 86_400_000
const KEEP_DELIVERED_MS = 2 * DAY_MS
const KEEP_MS = 30 * DAY_MS

/**
 * Registers the receivers and delivers events: each event at least once to each receiver, in any order. If a worker dies, another one resends
 * its deliveries when their lease ends.
 */
export async function startWebhooks(deps: StartWebhooksDeps): Promise<Webhooks> {
  const { store, clock, log, metrics, config, post = postWebhook } = deps
  const { urls = [], seeds = [] } = config ?? {}
  const signer = createWebhookSigner(seeds)
  const named = urls.map(({ href, origin }) => ({ urlHash: hash('sha256', href), origin }))
  const { ids, switchedOff: disabled } = await store.register({
    receivers: named,
    keys: signer.publicKeys,
    now: clock.now(),
  })
  if (disabled > 0) {
    log.warn({ msg: 'Disabled webhooks to receivers that these settings do not list', count: disabled })
  }
  const stopping = new AbortController()
  const tidying = tidy()
  if (config === undefined) {
    return {
      async stop() {
        stopping.abort()
        await tidying
      },
    }
  }
  const { deadlineMs, timeoutMs } = config
  const postDeps = { ...config, lookup: createLookup() }
  async function deliver(url: URL, { event, receiverId, attempts }: DueWebhook): Promise<string | undefined> {
    let failure: string | undefined
    try {
      await post(postDeps, { url, ...signer.sign(event, clock.now()) }, { signal: stopping.signal })
    } catch (error) {
      // It may have arrived. It is sent again, and receivers recognise its id.
      failure = error instanceof WebhookFailure ? error.code : stopping.signal.aborted ? 'stopped' : 'connection_failed'
    }
    const delayMs =
      failure === 'stopped' ? 0 : toBackoffMs({ attempt: attempts - 1, random: Math.random, capMs: MAX_BACKOFF_MS })
    const { origin } = url
    try {
      const status = await store.recordOutcome({ eventId: event.id, receiverId, failure, delayMs, deadlineMs })
      if (failure === 'stopped') return failure
      metrics.observeWebhook(origin, status === 'pending' ? 'failed' : status)
      if (status === 'dead') {
        log.warn({ msg: 'Gave up a webhook', name: event.type, id: event.id, origin, code: failure, attempt: attempts })
      }
    } catch (error) {
      log.warn({
        msg: 'Could not record a webhook attempt',
        name: event.type,
        id: event.id,
        origin,
        ...toReason(error),
      })
    }
    return failure
  }

  async function serve(url: URL, receiverId: number): Promise<void> {
    const deliveries = new Set<Promise<void>>()
    let limit = MAX_CONCURRENT
    // A slow receiver may handle fewer deliveries in time: each timeout halves the limit, each other outcome adds one.
    const send = async (webhook: DueWebhook) => {
      const isLate = (await deliver(url, webhook)) === 'timed_out'
      limit = isLate ? Math.max(1, limit / 2) : Math.min(MAX_CONCURRENT, limit + 1)
    }
    while (!stopping.signal.aborted) {
      const free = Math.max(1, Math.floor(limit) - deliveries.size)
      const due = await store
        .claim({ receiverId, limit: free, leaseMs: timeoutMs + LEASE_MARGIN_MS })
        .catch((error) => {
          log.warn({ msg: 'Could not read webhooks', origin: url.origin, ...toReason(error) })
          return []
        })
      for (const webhook of due) {
        const delivery = send(webhook).finally(() => deliveries.delete(delivery))
        deliveries.add(delivery)
      }
      if (due.length === 0) await pause(POLL_MS, stopping.signal)
      // Waits until half are done, so that the next claim gets many.
      while (deliveries.size > limit / 2) await Promise.race(deliveries)
    }
    await Promise.all(deliveries)
  }

  /** Runs even if webhooks are off, because old webhooks must still be deleted. */
  async function tidy(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await deleteOld()
        const count = await store.countInactive(ids)
        if (count > 0) log.warn({ msg: 'Another process has disabled webhooks to receivers in these settings', count })
      } catch (error) {
        log.warn({ msg: 'Could not delete old webhooks', ...toReason(error) })
      }
      await pause(TIDY_EVERY_MS, stopping.signal)
    }
  }

  async function deleteOld(): Promise<void> {
    const now = clock.now()
    let isOver = false
    while (!isOver && !stopping.signal.aborted) {
      const deleted = await store.forget({ deliveredBefore: now - KEEP_DELIVERED_MS, queuedBefore: now - KEEP_MS })
      const { undelivered } = deleted
      if (undelivered > 0) log.warn({ msg: 'Deleted undelivered webhooks', count: undelivered })
      isOver = deleted.isOver
    }
  }

  const running = Promise.all([...urls.map((url, index) => serve(url, ids[index] ?? 0)), tidying])
  log.info({ msg: 'Started webhooks', count: urls.length })
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** Resolves early when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {})
}

type WebhookSigner = {
  readonly publicKeys: readonly Uint8Array[]
  /** Creates the signed request for an event. Signs the time too, so that it can't be replayed much later. */
  sign(event: WebhookEvent, now: number): { headers: Record<string, string>; body: Uint8Array }
}

/** Signs with every key. */
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
