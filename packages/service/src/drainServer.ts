import type { Server, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

/** One turn of the event loop accepts a connection, and one reads its request. The rest is margin. */
const TURNS = 5
/** How long `closeServer` waits for callers to close their connections. */
const CLOSE_MS = 5_000

/**
 * Accepts connections and reads requests that reached the kernel before a stop. The event loop may handle the signal first; if the
 * server closed its sockets then, the kernel would reset them. From here on each response ends its connection, including pending `answers`.
 */
export async function drainServer(server: Server, answers: Iterable<ServerResponse> = []): Promise<void> {
  const endConnection = (response: ServerResponse) => {
    response.shouldKeepAlive = false
  }
  server.prependListener('request', (_request, response) => endConnection(response))
  for (const answer of answers) endConnection(answer)
  for (let turn = 0; turn < TURNS; turn++) await setImmediate()
}

/** The pending responses of a server, for `closeServer`. */
export function trackAnswers(server: Server): ReadonlySet<ServerResponse> {
  const answers = new Set<ServerResponse>()
  server.on('request', (_request, response) => {
    answers.add(response)
    response.once('close', () => answers.delete(response))
  })
  return answers
}

/**
 * Stops a server: it responds to the requests that were sent before, then closes the connections after at most five seconds. Responses that
 * are not in `answers` keep their connection open, so then the stop takes all of that time.
 */
export async function closeServer(server: Server, answers?: ReadonlySet<ServerResponse>): Promise<void> {
  await drainServer(server, answers)
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  const deadline = setTimeout(() => server.closeAllConnections(), CLOSE_MS)
  await closed
  clearTimeout(deadline)
}
