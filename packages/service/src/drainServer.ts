import type { Server, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

/** A turn of the event loop to accept a connection, one to read its request, and some to spare. */
const TURNS = 5
/** How long `closeServer` waits for callers to close their connections. */
const CLOSE_MS = 5_000

/**
 * Accepts the connections and reads the requests that reached the system before a stop. The event loop may handle the signal first; if the
 * server closed its sockets then, the system would reset them. From here on each answer ends its connection, the `answers` under way too.
 */
export async function drainServer(server: Server, answers: Iterable<ServerResponse> = []): Promise<void> {
  const endConnection = (response: ServerResponse) => {
    response.shouldKeepAlive = false
  }
  server.prependListener('request', (_request, response) => endConnection(response))
  for (const answer of answers) endConnection(answer)
  for (let turn = 0; turn < TURNS; turn++) await setImmediate()
}

/** The answers of a server that are under way, for `closeServer`. */
export function trackAnswers(server: Server): ReadonlySet<ServerResponse> {
  const answers = new Set<ServerResponse>()
  server.on('request', (_request, response) => {
    answers.add(response)
    response.once('close', () => answers.delete(response))
  })
  return answers
}

/**
 * Stops a server: it answers the requests that were sent before, then closes the connections, at the latest after five seconds. Callers
 * keep the connection of an answer that is not among `answers`, so the stop takes all of that time.
 */
export async function closeServer(server: Server, answers?: ReadonlySet<ServerResponse>): Promise<void> {
  await drainServer(server, answers)
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  const deadline = setTimeout(() => server.closeAllConnections(), CLOSE_MS)
  await closed
  clearTimeout(deadline)
}
