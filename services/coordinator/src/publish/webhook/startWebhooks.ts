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

/** What operators watch about webhooks: how each attempt ended. */
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

/** Under way at one time, to each receiver: one that hangs takes nothing from the others. */
const MAX_UNDER_WAY = 32
const POLL_MS = 500
/** Beyond the time limit of the request: enough to write down how it ended. */
const LEASE_MARGIN_MS = 10_000
const MAX_BACKOFF_MS = 14_400_000
const TIDY_EVERY_MS = 60_000
const DAY_MS = 86_400_000
const KEEP_DELIVERED_MS = 2 * DAY_MS
const KEEP_MS = 30 * DAY_MS

/**
 * Says who is to be told from now on, and tells them: each event at least once to each receiver, in no order. What is under way when a
 * worker dies is sent again by another when its lease is over.
 */
export async function startWebhooks(deps: StartWebhooksDeps): Promise<Webhooks> {
  const { store, clock, log, metrics, config, post = postWebhook } = deps
  const { urls = [], seeds = [] } = config ?? {}
  const signer = createWebhookSigner(seeds)
  const named = urls.map(({ href, origin }) => ({ urlHash: hash('sha256', href), origin }))
  const { ids, switchedOff } = await store.register({ receivers: named, keys: signer.publicKeys, now: clock.now() })
  if (switchedOff > 0) {
    log.warn({ msg: 'Switched off webhooks to receivers that these settings do not name', count: switchedOff })
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
      // Whether it has arrived is not known: it is sent again, and its id tells.
      failure = error instanceof WebhookFailure ? error.code : stopping.signal.aborted ? 'stopped' : 'connection_failed'
    }
    const delayMs =
      failure === 'stopped' ? 0 : toBackoffMs({ attempt: attempts - 1, random: Math.random, capMs: MAX_BACKOFF_MS })
    const { origin } = url
    try {
      const status = await store.settle({ eventId: event.id, receiverId, failure, delayMs, deadlineMs })
      if (failure === 'stopped') return failure
      metrics.observeWebhook(origin, status === 'pending' ? 'failed' : status)
      if (status === 'dead') {
        log.warn({ msg: 'Gave up a webhook', name: event.type, id: event.id, origin, code: failure, attempt: attempts })
      }
    } catch (error) {
      log.warn({ msg: 'Could not settle a webhook', name: event.type, id: event.id, origin, ...toReason(error) })
    }
    return failure
  }

  async function serve(url: URL, receiverId: number): Promise<void> {
    const underWay = new Set<Promise<void>>()
    let most = MAX_UNDER_WAY
    // One that answers too late for all of them may answer a few in time: each that is late halves how many, each that is not allows one more.
    const send = async (webhook: DueWebhook) => {
      const isLate = (await deliver(url, webhook)) === 'timed_out'
      most = isLate ? Math.max(1, most / 2) : Math.min(MAX_UNDER_WAY, most + 1)
    }
    while (!stopping.signal.aborted) {
      const limit = Math.max(1, Math.floor(most) - underWay.size)
      const due = await store.claim({ receiverId, limit, leaseMs: timeoutMs + LEASE_MARGIN_MS }).catch((error) => {
        log.warn({ msg: 'Could not look for webhooks', origin: url.origin, ...toReason(error) })
        return []
      })
      for (const webhook of due) {
        const delivery = send(webhook).finally(() => underWay.delete(delivery))
        underWay.add(delivery)
      }
      if (due.length === 0) await pause(POLL_MS, stopping.signal)
      // Half of the places at least: the next look is for many.
      while (underWay.size > most / 2) await Promise.race(underWay)
    }
    await Promise.all(underWay)
  }

  /** Also where there are no webhooks any more: what is left of them has its term. */
  async function tidy(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await forget()
        const count = await store.countInactive(ids)
        if (count > 0) log.warn({ msg: 'Other settings have switched off webhooks to receivers of these', count })
      } catch (error) {
        log.warn({ msg: 'Could not tidy up webhooks', ...toReason(error) })
      }
      await pause(TIDY_EVERY_MS, stopping.signal)
    }
  }

  async function forget(): Promise<void> {
    const now = clock.now()
    let isOver = false
    while (!isOver && !stopping.signal.aborted) {
      const forgotten = await store.forget({ deliveredBefore: now - KEEP_DELIVERED_MS, queuedBefore: now - KEEP_MS })
      const { undelivered } = forgotten
      if (undelivered > 0) log.warn({ msg: 'Forgot webhooks that were never delivered', count: undelivered })
      isOver = forgotten.isOver
    }
  }

  const serving = Promise.all([...urls.map((url, index) => serve(url, ids[index] ?? 0)), tidying])
  log.info({ msg: 'Started webhooks', count: urls.length })
  return {
    async stop() {
      stopping.abort()
      await serving
    },
  }
}

/** Ends early, and well, when the signal says so. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {})
}

type WebhookSigner = {
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
