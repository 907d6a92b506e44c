import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A wire between a client and a server, which can be cut. */
export type Relay = {
  port: number
  /** Ends every connection, and takes no new one until `mend`. */
  cut(): void
  mend(): void
  stop(): Promise<void>
}

export async function startRelay({ port: target }: { port: number }): Promise<Relay> {
  const sockets = new Set<Socket>()
  let isCut = false
  const hold = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    // Each end hears of the other's failure by its own end.
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer((inner) => {
    hold(inner)
    if (isCut) return void inner.resetAndDestroy()
    const outer = connect(target, '127.0.0.1')
    hold(outer)
    inner.pipe(outer).pipe(inner)
    inner.on('close', () => outer.destroy())
    outer.on('close', () => inner.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const endAll = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      endAll()
    },
    mend() {
      isCut = false
    },
    async stop() {
      const closed = once(server, 'close')
      server.close()
      endAll()
      await closed
    },
  }
}
