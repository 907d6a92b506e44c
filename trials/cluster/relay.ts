import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP relay between a client and a server that can be interrupted. */
export type Relay = {
  port: number
  /** Closes all connections and rejects new ones until `restore`. */
  cut(): void
  restore(): void
  stop(): Promise<void>
}

export async function startRelay({ port: target }: { port: number }): Promise<Relay> {
  const sockets = new Set<Socket>()
  let isCut = false
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    // Errors are handled by the other end's close.
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer((inner) => {
    track(inner)
    if (isCut) return void inner.resetAndDestroy()
    const outer = connect(target, '127.0.0.1')
    track(outer)
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
    restore() {
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
