import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/**
 * Takes no more connections, and closes those that are open when `answerAll` has resolved. Until then the server's limits hold: the `close` of
 * an HTTP server also ends the timer that enforces them, and who then sends a body byte by byte would be waited for until the process is killed.
 */
export async function stopHttpServer(server: Server, answerAll: () => Promise<void>): Promise<void> {
  NetServer.prototype.close.call(server)
  server.closeIdleConnections()
  await answerAll()
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
