import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { ServiceError, verifyWebhook, type WebhookEvent } from '@countersign/sdk/webhooks'
import { listen } from '@countersign/testing/stack'

/** The ways in which a receiver can fail. */
const failures = ['status', 'hang', 'reset', 'half', 'redirect'] as const
type Failure = (typeof failures)[number]

/** A request in a form that can be sent again. */
export type Captured = { headers: Record<string, string>; body: string }

export type Receiver = {
  url: string
  /** Processed events by id. */
  processed: ReadonlyMap<string, WebhookEvent>
  /** The first requests received. */
  captured: readonly Captured[]
  /** Number of requests by result. */
  counts: Record<Failure | 'processed' | 'replayed' | 'rejected', number>
  /** Number of requests to the address that redirects point to. */
  trapped(): number
  /** Stops failing. */
  recover(): void
  stop(): Promise<void>
}

const MAX_CAPTURED = 200

/**
 * A receiver on loopback that verifies requests with the SDK. It fails at the given rate in the ways in which servers fail. With a rate of 1
 * it always fails until it recovers.
 */
export async function startReceiver(parameters: {
  /** `whpk_…` keys, read for each request. */
  keys(): readonly string[]
  rate: number
  random(): number
}): Promise<Receiver> {
  const { keys, random } = parameters
  let { rate } = parameters
  const processed = new Map<string, WebhookEvent>()
  const captured: Captured[] = []
  const counts = { status: 0, hang: 0, reset: 0, half: 0, redirect: 0, processed: 0, replayed: 0, rejected: 0 }
  let trapped = 0
  const trap = createServer((_, response) => {
    trapped += 1
    response.end('secrets')
  })
  const trapping = await listen(trap)

  async function process(request: IncomingMessage, response: ServerResponse) {
    const body = await text(request)
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    try {
      const event = await verifyWebhook({ headers, body, keys: keys(), seen: (id) => processed.has(id) })
      if (random() < rate) return fail(failures[Math.floor(random() * failures.length)] ?? 'status', response)
      processed.set(event.id, event)
      if (captured.length < MAX_CAPTURED) captured.push({ headers, body })
      counts.processed += 1
    } catch (error) {
      const isReplayed = error instanceof ServiceError && error.code === 'webhook_replayed'
      counts[isReplayed ? 'replayed' : 'rejected'] += 1
      if (!isReplayed) return void response.writeHead(400).end()
    }
    response.writeHead(204).end()
  }
  function fail(failure: Failure, response: ServerResponse) {
    counts[failure] += 1
    if (failure === 'status') response.writeHead(500).end('not now')
    if (failure === 'reset') response.socket?.resetAndDestroy()
    if (failure === 'redirect') response.writeHead(307, { location: `${trapping.url}/latest/meta-data` }).end()
    if (failure === 'half') {
      response.writeHead(200, { 'content-length': 10 }).write('half ', () => response.socket?.destroy())
    }
  }

  const server = createServer((request, response) => {
    process(request, response).catch(() => response.destroy())
  })
  const listening = await listen(server)
  return {
    url: `${listening.url}/hook`,
    processed,
    captured,
    counts,
    trapped: () => trapped,
    recover() {
      rate = 0
    },
    async stop() {
      await listening.stop()
      await trapping.stop()
    },
  }
}
