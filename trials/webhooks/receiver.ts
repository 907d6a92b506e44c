import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { ServiceError, verifyWebhook, type WebhookEvent } from '@countersign/sdk/webhooks'
import { listen } from '@countersign/testing/stack'

/** What a receiver can do instead of its work. */
const moods = ['status', 'hang', 'reset', 'half', 'redirect'] as const
type Mood = (typeof moods)[number]

/** A request as it came, to be sent again. */
export type Captured = { headers: Record<string, string>; body: string }

export type Receiver = {
  url: string
  /** What it acted on, by id: each once. */
  acted: ReadonlyMap<string, WebhookEvent>
  /** The first requests, as they came. */
  captured: readonly Captured[]
  /** Requests that came, by what became of them. */
  counts: Record<Mood | 'acted' | 'replayed' | 'refused', number>
  /** Requests at the address that redirects point to. */
  trapped(): number
  /** From now on it never fails. */
  recover(): void
  stop(): Promise<void>
}

const MAX_CAPTURED = 200

/**
 * The server of somebody else, on loopback, which judges what comes by the SDK's helper. It fails at random, in each of the ways in which
 * servers fail; or, with a rate of 1, always, until it recovers.
 */
export async function startReceiver(parameters: {
  /** `whpk_…`; asked for at each request. */
  keys(): readonly string[]
  rate: number
  random(): number
}): Promise<Receiver> {
  const { keys, random } = parameters
  let { rate } = parameters
  const acted = new Map<string, WebhookEvent>()
  const captured: Captured[] = []
  const counts = { status: 0, hang: 0, reset: 0, half: 0, redirect: 0, acted: 0, replayed: 0, refused: 0 }
  let trapped = 0
  const trap = createServer((_, response) => {
    trapped += 1
    response.end('secrets')
  })
  const trapping = await listen(trap)

  async function act(request: IncomingMessage, response: ServerResponse) {
    const body = await text(request)
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    try {
      const event = await verifyWebhook({ headers, body, keys: keys(), seen: (id) => acted.has(id) })
      if (random() < rate) return misbehave(moods[Math.floor(random() * moods.length)] ?? 'status', response)
      acted.set(event.id, event)
      if (captured.length < MAX_CAPTURED) captured.push({ headers, body })
      counts.acted += 1
    } catch (error) {
      const isReplayed = error instanceof ServiceError && error.code === 'webhook_replayed'
      counts[isReplayed ? 'replayed' : 'refused'] += 1
      if (!isReplayed) return void response.writeHead(400).end()
    }
    response.writeHead(204).end()
  }
  function misbehave(mood: Mood, response: ServerResponse) {
    counts[mood] += 1
    if (mood === 'status') response.writeHead(500).end('not now')
    if (mood === 'reset') response.socket?.resetAndDestroy()
    if (mood === 'redirect') response.writeHead(307, { location: `${trapping.url}/latest/meta-data` }).end()
    if (mood === 'half') {
      response.writeHead(200, { 'content-length': 10 }).write('half ', () => response.socket?.destroy())
    }
  }

  const server = createServer((request, response) => {
    act(request, response).catch(() => response.destroy())
  })
  const listening = await listen(server)
  return {
    url: `${listening.url}/hook`,
    acted,
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
