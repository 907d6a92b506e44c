import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An idle Node server: the cost of any answer of `BODY_BYTES` bytes on this machine. */
const body = JSON.stringify('x'.repeat(Number(process.env.BODY_BYTES ?? '0') - 2))
const headers = {
  'content-type': 'application/json',
  'content-length': Buffer.byteLength(body),
  // Lets nginx cache it when both are measured through a cache.
  'cache-control': 'public, max-age=3600',
}
const server = createServer((_, outgoing) => outgoing.writeHead(200, headers).end(body))
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(JSON.stringify({ msg: 'Started the echo server', address: `http://127.0.0.1:${port}` }))
})
process.once('SIGTERM', () => server.close())
