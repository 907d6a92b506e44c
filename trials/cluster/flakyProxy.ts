import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { listen } from '@countersign/testing/stack'

/** A service that fails now and then, in front of one that works. */
export type FlakyProxy = {
  url: string
  /** From the next request on: the share of requests that fail. */
  setRate(rate: number): void
  /** How many requests it was asked, and how many of them it failed. */
  readonly counts: { asked: number; failed: number }
  stop(): Promise<void>
}

/** Whether the service gets the request is known from none of these. */
const FAULTS = ['reset', 'error', 'answer-lost', 'slow'] as const
const SLOW_MS = 2_000

/** Fails some requests before they reach `target`, others after it has served them. `random` decides which. */
export async function startFlakyProxy(parameters: {
  target: string
  random: () => number
  rate?: number
}): Promise<FlakyProxy> {
  const { random } = parameters
  const target = new URL(parameters.target)
  const timers = new Set<NodeJS.Timeout>()
  const counts = { asked: 0, failed: 0 }
  let rate = parameters.rate ?? 0

  function pass(request: IncomingMessage, response: ServerResponse, fault: (typeof FAULTS)[number] | undefined) {
    const onward = send(
      { host: target.hostname, port: target.port, path: request.url, method: request.method, headers: request.headers },
      (answer) => {
        if (fault === 'answer-lost') {
          answer.resume()
          return void answer.on('end', () => request.socket.resetAndDestroy())
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
        answer.on('error', () => response.destroy())
      },
    )
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  }

  const server = createServer((request, response) => {
    counts.asked += 1
    const fault = random() < rate ? FAULTS[Math.floor(random() * FAULTS.length)] : undefined
    if (fault !== undefined) counts.failed += 1
    request.on('error', () => {})
    response.on('error', () => {})
    if (fault === 'reset') return void request.socket.resetAndDestroy()
    if (fault === 'error') return void response.writeHead(500).end('out of order')
    if (fault !== 'slow') return pass(request, response, fault)
    const timer = setTimeout(() => {
      timers.delete(timer)
      pass(request, response, fault)
    }, SLOW_MS)
    timers.add(timer)
  })
  const { url, stop } = await listen(server)
  return {
    url,
    setRate(next) {
      rate = next
    },
    counts,
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      await stop()
    },
  }
}
