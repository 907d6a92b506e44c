import { connect, createServer } from 'node:net'

/** Hands metrics on, which are on loopback alone, to the scraper: `metrics.ts FROM TO`, two ports. */
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
// The first process of a container gets no signal that it does not listen to.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
