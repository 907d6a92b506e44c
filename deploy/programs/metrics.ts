import { connect, createServer } from 'node:net'

/** Forwards metrics from a loopback port to the scraper: `metrics.ts FROM TO`. */
const [from = '', to = ''] = process.argv.slice(2)
createServer((caller) => {
  const metrics = connect(Number(from), '127.0.0.1')
  for (const socket of [caller, metrics]) {
    socket.on('error', () => {
      caller.destroy()
      metrics.destroy()
    })
  }
  caller.pipe(metrics).pipe(caller)
}).listen(Number(to))
// The first process of a container ignores signals without a handler.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
