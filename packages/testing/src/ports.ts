import { createServer } from 'node:net'

/**
 * Below Linux's range for ephemeral ports (32768 and up). In that range, a server on any port or an outgoing connection could take a port
 * between finding and using it.
 */
const LOWEST = 20_000
/** Test workers search different ranges, because minutes can pass between finding and using a port. Vitest numbers its workers from 1. */
const WORKERS = 8
const COUNT = 1_500
const FIRST = LOWEST + COUNT * (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS)
const MAX_TRIES = 1_000

/** Finds loopback ports that are currently free. */
export async function findFreePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  for (let tries = 0; ports.size < count; tries++) {
    if (tries === MAX_TRIES) throw new Error('no free port on loopback')
    const port = FIRST + Math.floor(Math.random() * COUNT)
    if (!ports.has(port) && (await isFree(port))) ports.add(port)
  }
  return [...ports]
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
