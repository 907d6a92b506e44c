import { createServer } from 'node:http'
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client'

/** What operators watch; served on a port of its own, which the internet never reaches. */
export type Metrics = {
  /** How many signings went to the enclave in one call. */
  observeBatch(size: number): void
  /** How long a request for a signature took, by its outcome. */
  observeSigning(code: string, seconds: number): void
  listen(port: number, host: string): Promise<{ stop(): Promise<void> }>
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const batches = new Histogram({
    name: 'countersign_sign_batch_size',
    help: 'Signings sent to the enclave in one call',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers: [registry],
  })
  const signings = new Histogram({
    name: 'countersign_sign_seconds',
    help: 'Time of a request for a signature, by its outcome',
    labelNames: ['code'],
    buckets: [0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    registers: [registry],
  })
  return {
    observeBatch: (size) => batches.observe(size),
    observeSigning: (code, seconds) => signings.observe({ code }, seconds),
    async listen(port, host) {
      const server = createServer(async (request, response) => {
        if (request.url !== '/metrics') return void response.writeHead(404).end()
        response.setHeader('content-type', registry.contentType)
        response.end(await registry.metrics())
      })
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
      return {
        async stop() {
          server.closeAllConnections()
          await new Promise((resolve) => server.close(resolve))
        },
      }
    },
  }
}
