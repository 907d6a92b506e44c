import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { createFakeClock, createFakeLog, createFakeRandom } from '../ports.fake.ts'
import type { AppEnv } from './context.ts'
import { createGuards } from './guards.ts'
import { createMiddleware } from './middleware.ts'

test('a page is under way until it is marked as mock', async () => {
  const origins = { allowedOrigins: [], trustedProxies: [] }
  const outside = { clock: createFakeClock(), random: createFakeRandom(), log: createFakeLog() }
  const guards = createGuards({ config: origins, isHttps: true, isMock: true, ...outside })
  const { record } = createMiddleware({ guards, origins, isMock: true })
  const { readable, writable } = new TransformStream()
  const headers = { 'content-type': 'text/html' }
  const app = new Hono<AppEnv>().use(record).get('/page', () => new Response(readable, { headers }))
  const page = app.request('/page')
  let hasStopped = false
  const stopped = guards.stop().then(() => (hasStopped = true))
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(hasStopped).toBe(false)
  const writer = writable.getWriter()
  await writer.write(Buffer.from('<body>'))
  await writer.close()
  expect(await (await page).text()).toContain('MOCK')
  await stopped
})
