import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/** The same framework with nothing to do: what any answer of `BODY_BYTES` bytes costs on this machine. */
const body = JSON.stringify('x'.repeat(Number(process.env.BODY_BYTES ?? '0')))
const app = new Hono()
app.get('/proof/:slug', (context) => context.body(body, 200, { 'content-type': 'application/json' }))
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  console.log(JSON.stringify({ msg: 'Started the echo server', address: `http://127.0.0.1:${port}` }))
})
process.once('SIGTERM', () => server.close())
