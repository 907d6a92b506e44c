import { once } from 'node:events'
import { Server as NetServer } from 'node:net'
import { drainServer } from '@countersign/service'
import type { HttpServer } from './createHttpServer.ts'

/** Must cover exports, which continue after `answerAll`. Containers have twice this time to stop. */
const PATIENCE_MS = 30_000

/**
 * Stops accepting connections, answers all requests that were sent before, and closes the rest after `answerAll` and all responses are
 * complete, or after `patienceMs`. It first calls `close` of `net.Server`, because `close` of an HTTP server also stops the timer for the
 * server's limits: a caller that sends a body byte by byte could then delay the stop until the process is killed.
 */
export async function stopHttpServer(
  server: HttpServer,
  answerAll: () => Promise<void>,
  { patienceMs = PATIENCE_MS }: { patienceMs?: number } = {},
): Promise<void> {
  const patience = AbortSignal.timeout(patienceMs)
  await drainServer(server, server.answers)
  NetServer.prototype.close.call(server)
  server.closeIdleConnections()
  await answerAll()
  // Idle connections may still send one more request.
  while (server.answers.size > 0 && !patience.aborted) {
    await Promise.allSettled([...server.answers].map((answer) => once(answer, 'close', { signal: patience })))
  }
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
