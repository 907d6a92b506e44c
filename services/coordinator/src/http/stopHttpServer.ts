import { once } from 'node:events'
import { Server as NetServer } from 'node:net'
import { drainServer } from '@countersign/service'
import type { HttpServer } from './createHttpServer.ts'

/** For exports, which are answered as soon as they begin. Containers have twice that for their stop. */
const PATIENCE_MS = 30_000

/**
 * Reads the requests that were sent before the stop, takes no more connections, and closes those that are open when `answerAll` has
 * resolved and all answers have been taken, or some time after the stop began. Until then the server's limits hold: the `close` of an HTTP server also ends the timer that enforces them, and
 * who then sends a body byte by byte would be waited for until the process is killed.
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
  // An idle connection may still send one more request.
  while (server.answers.size > 0 && !patience.aborted) {
    await Promise.allSettled([...server.answers].map((answer) => once(answer, 'close', { signal: patience })))
  }
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
