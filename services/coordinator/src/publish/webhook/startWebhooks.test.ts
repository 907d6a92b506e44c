import { hash } from 'node:crypto'
import { toWebhookMessage, verifyEd25519, type WebhookEvent } from '@countersign/protocol'
import { afterEach, describe, expect, test } from 'vitest'
import { createFakeLog } from '../../../test/ports.ts'
import type { DueWebhook, NamedReceiver, WebhookOutcome, WebhookStore } from '../../store/webhooks.ts'
import { type postWebhook, WebhookFailure } from './postWebhook.ts'
import type { WebhookConfig } from './readWebhooks.ts'
import { createWebhookSigner, startWebhooks, type Webhooks } from './startWebhooks.ts'

const NOW = Date.UTC(2026, 10, 16, 12)
const seed = Buffer.alloc(32, 7)
const config: WebhookConfig = {
  urls: [new URL('https://one.example/secret-path'), new URL('https://two.example/')],
  seeds: [seed],
  allowsLoopback: false,
  deadlineMs: 60_000,
  timeoutMs: 1_000,
}
const toEvent = (number: number): WebhookEvent => ({
  type: 'session.created',
  id: `msg_${number}`,
  timestamp: new Date(NOW).toISOString(),
  data: { walletAddress: '0xaa' },
})

/** One queue per receiver. Claimed webhooks do not return. */
function createMemoryWebhooks() {
  const queues = new Map<number, DueWebhook[]>()
  const outcomes: WebhookOutcome[] = []
  const registered: NamedReceiver[][] = []
  const claims: number[] = []
  const store: WebhookStore = {
    async register({ receivers }) {
      registered.push([...receivers])
      return { ids: receivers.map((_, index) => index + 1), switchedOff: 0 }
    },
    async countInactive() {
      return 0
    },
    async claim({ receiverId, limit }) {
      claims.push(limit)
      return queues.get(receiverId)?.splice(0, limit) ?? []
    },
    async recordOutcome(outcome) {
      outcomes.push(outcome)
      return outcome.failure === undefined ? 'delivered' : outcome.failure === 'status_410' ? 'dead' : 'pending'
    },
    async forget() {
      return { undelivered: 0, isOver: true }
    },
  }
  const add = (receiverId: number, events: readonly WebhookEvent[], attempts = 1) =>
    void queues.set(
      receiverId,
      events.map((event) => ({ event, receiverId, attempts })),
    )
  return { store, add, outcomes, registered, claims }
}

let running: Webhooks | undefined
afterEach(() => running?.stop())

async function start(memory: ReturnType<typeof createMemoryWebhooks>, post: typeof postWebhook, changes = {}) {
  const log = createFakeLog()
  const observed: string[] = []
  running = await startWebhooks({
    store: memory.store,
    clock: { now: () => NOW },
    log,
    metrics: { observeWebhook: (receiver, outcome) => void observed.push(`${receiver} ${outcome}`) },
    config,
    post,
    ...changes,
  })
  return { log, observed }
}

test('delivers to each receiver, signed with the registered key and the time of the attempt', async () => {
  const memory = createMemoryWebhooks()
  memory.add(1, [toEvent(1)])
  memory.add(2, [toEvent(1)])
  const sent: { href: string; event: WebhookEvent }[] = []
  const [key = new Uint8Array()] = createWebhookSigner([seed]).publicKeys
  const { observed } = await start(memory, async (_deps, { url, headers, body }) => {
    const event: WebhookEvent = JSON.parse(Buffer.from(body).toString())
    const [, base64 = ''] = /^v1a,(.+)$/.exec(headers['webhook-signature'] ?? '') ?? []
    const message = toWebhookMessage({ id: event.id, timestamp: NOW / 1000, body })
    expect(verifyEd25519(key, Buffer.from(base64, 'base64'), message)).toBe(true)
    expect(headers).toMatchObject({ 'webhook-id': event.id, 'webhook-timestamp': String(NOW / 1000) })
    sent.push({ href: url.href, event })
  })
  await expect.poll(() => memory.outcomes).toHaveLength(2)
  expect(sent.map(({ href }) => href).sort()).toEqual(['https://one.example/secret-path', 'https://two.example/'])
  expect(sent.map(({ event }) => event)).toEqual([toEvent(1), toEvent(1)])
  expect(memory.outcomes).toMatchObject([{ failure: undefined }, { failure: undefined }])
  expect(observed.sort()).toEqual(['https://one.example delivered', 'https://two.example delivered'])
})

test('stores a URL’s hash and origin, not its path', async () => {
  const memory = createMemoryWebhooks()
  const { log } = await start(memory, async () => {})
  expect(memory.registered[0]?.[0]).toEqual({
    urlHash: hash('sha256', 'https://one.example/secret-path'),
    origin: 'https://one.example',
  })
  expect(JSON.stringify([memory.registered, log.lines])).not.toContain('secret-path')
})

describe('a failure', () => {
  test.each([
    [1, 1_000],
    [5, 16_000],
    [40, 14_400_000],
  ])('is retried after attempt %s within %s ms', async (attempts, mostMs) => {
    const memory = createMemoryWebhooks()
    memory.add(1, [toEvent(1)], attempts)
    const { observed } = await start(memory, async () => {
      throw new WebhookFailure('status_500')
    })
    await expect.poll(() => observed).toEqual(['https://one.example failed'])
    expect(memory.outcomes).toMatchObject([{ eventId: 'msg_1', failure: 'status_500', deadlineMs: 60_000 }])
    const { delayMs = 0 } = memory.outcomes[0] ?? {}
    expect(delayMs).toBeGreaterThanOrEqual(250)
    expect(delayMs).toBeLessThanOrEqual(mostMs)
  })
  test('after the deadline is counted and logged without text from the receiver', async () => {
    const memory = createMemoryWebhooks()
    memory.add(1, [toEvent(1)])
    const { observed, log } = await start(memory, async () => {
      throw new WebhookFailure('status_410')
    })
    await expect.poll(() => observed).toEqual(['https://one.example dead'])
    expect(log.lines).toContainEqual(
      expect.objectContaining({
        msg: 'Gave up a webhook',
        id: 'msg_1',
        origin: 'https://one.example',
        code: 'status_410',
      }),
    )
  })
  test('of another kind reveals nothing', async () => {
    const memory = createMemoryWebhooks()
    memory.add(1, [toEvent(1)])
    await start(memory, async () => {
      throw new Error('a secret of the receiver')
    })
    await expect.poll(() => memory.outcomes).toMatchObject([{ failure: 'connection_failed' }])
  })
  test('of the database does not stop deliveries', async () => {
    const memory = createMemoryWebhooks()
    let asked = 0
    const claim: WebhookStore['claim'] = (parameters) => {
      asked += 1
      return asked <= 2 ? Promise.reject(new Error('down')) : memory.store.claim(parameters)
    }
    memory.add(1, [toEvent(1)])
    await start(memory, async () => {}, { store: { ...memory.store, claim } })
    await expect.poll(() => memory.outcomes).toHaveLength(1)
  })
})

test('a receiver that hangs does not delay others or exceed its limit', async () => {
  const memory = createMemoryWebhooks()
  memory.add(
    1,
    Array.from({ length: 100 }, (_, index) => toEvent(index)),
  )
  memory.add(
    2,
    Array.from({ length: 100 }, (_, index) => toEvent(index)),
  )
  let hanging = 0
  await start(memory, (_deps, { url }, { signal } = {}) => {
    if (url.hostname !== 'one.example') return Promise.resolve()
    hanging += 1
    return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  })
  await expect.poll(() => memory.outcomes).toHaveLength(100)
  expect(memory.outcomes.every(({ receiverId }) => receiverId === 2)).toBe(true)
  expect(hanging).toBe(32)
  expect(Math.max(...memory.claims)).toBe(32)
  // Running deliveries are due at once for another worker when this one stops.
  await running?.stop()
  const stopped = memory.outcomes.filter(({ receiverId }) => receiverId === 1)
  expect(stopped).toHaveLength(32)
  for (const outcome of stopped) expect(outcome).toMatchObject({ failure: 'stopped', delayMs: 0 })
})

test('reduces concurrent deliveries to a slow receiver, and raises them again', async () => {
  const memory = createMemoryWebhooks()
  memory.add(
    1,
    Array.from({ length: 300 }, (_, index) => toEvent(index)),
  )
  let [underWay, sent] = [0, 0]
  const peaks: number[] = []
  await start(memory, async () => {
    underWay += 1
    sent += 1
    peaks[Math.floor((sent - 1) / 100)] = Math.max(underWay, peaks[Math.floor((sent - 1) / 100)] ?? 0)
    const isLate = sent <= 100
    await new Promise((resolve) => setImmediate(resolve))
    underWay -= 1
    if (isLate) throw new WebhookFailure('timed_out')
  })
  await expect.poll(() => memory.outcomes).toHaveLength(300)
  expect(peaks[0]).toBe(32)
  expect(memory.claims.filter((limit) => limit === 1).length).toBeGreaterThan(10)
  expect(peaks[2]).toBe(32)
})

test('disables all receivers without settings', async () => {
  const memory = createMemoryWebhooks()
  await start(memory, async () => {}, { config: undefined })
  expect([memory.registered, memory.claims]).toEqual([[[]], []])
})

describe.each([
  ['with settings', config],
  ['without settings', undefined],
])('%s', (_name, given) => {
  test('deletes all old webhooks and logs undelivered ones', async () => {
    const memory = createMemoryWebhooks()
    const forgets: unknown[] = []
    const forget: WebhookStore['forget'] = async (parameters) => {
      forgets.push(parameters)
      return { undelivered: forgets.length === 2 ? 7 : 0, isOver: forgets.length === 3 }
    }
    const { log } = await start(memory, async () => {}, { config: given, store: { ...memory.store, forget } })
    await expect.poll(() => forgets).toHaveLength(3)
    const day = 86_400_000
    expect(forgets[0]).toEqual({ deliveredBefore: NOW - 2 * day, queuedBefore: NOW - 30 * day })
    await running?.stop()
    expect(forgets).toHaveLength(3)
    expect(log.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'Deleted undelivered webhooks', count: 7 }),
    )
  })

  test('logs receivers that these settings disable', async () => {
    const memory = createMemoryWebhooks()
    const register: WebhookStore['register'] = async (parameters) => ({
      ...(await memory.store.register(parameters)),
      switchedOff: 2,
    })
    const { log } = await start(memory, async () => {}, { config: given, store: { ...memory.store, register } })
    expect(log.lines).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        msg: 'Disabled webhooks to receivers that these settings do not list',
        count: 2,
      }),
    )
  })
})

test('logs receivers that another process has disabled', async () => {
  const memory = createMemoryWebhooks()
  const asked: number[][] = []
  const countInactive: WebhookStore['countInactive'] = async (ids) => {
    asked.push([...ids])
    return 1
  }
  const { log } = await start(memory, async () => {}, { store: { ...memory.store, countInactive } })
  const said = { msg: 'Another process has disabled webhooks to receivers in these settings', count: 1 }
  await expect.poll(() => log.lines).toContainEqual(expect.objectContaining(said))
  expect(asked).toEqual([[1, 2]])
})
