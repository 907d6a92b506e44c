import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Listening = {
  port: number
  url: string
  /** Frees the port and closes open connections. */
  stop(): Promise<void>
}

/** Starts a server on a loopback port. 0 takes a free one. */
export async function listen(server: Server, port = 0): Promise<Listening> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: opened } = server.address() as AddressInfo
  let closed: Promise<unknown> | undefined
  return {
    port: opened,
    url: `http://127.0.0.1:${opened}`,
    async stop() {
      closed ??= once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
