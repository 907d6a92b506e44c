import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Listening = {
  port: number
  url: string
  /** Frees the port, and cuts the connections that callers keep open. */
  stop(): Promise<void>
}

/** Opens a port on loopback for a server; any free one for 0. */
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
