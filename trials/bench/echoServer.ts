import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/** The same framework with nothing to do: what any answer costs on this machine. A proof has as many bytes as `BODY_BYTES` says. */
const body = JSON.stringify('x'.repeat(Number(process.env.BODY_BYTES ?? '0')))
const app = new Hono()
app.post('/sign/digest', async (context) => {
  const { digest } = (await context.req.json()) as { digest: string }
  return context.json({ signature: `${digest}${digest.slice(2)}1b`, slug: digest.slice(2, 24) })
})
app.get('/proof/:slug', (context) => context.body(body, 200, { 'content-type': 'application/json' }))
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  console.log(JSON.stringify({ msg: 'Started the echo server', address: `http://127.0.0.1:${port}` }))
})
process.once('SIGTERM', () => server.close())
