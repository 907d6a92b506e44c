import { expect, test } from 'vitest'
import { createFetchBytes } from './fetchBytes.ts'
import { findApi } from './findApi.ts'
import { html, json } from './network.fake.ts'

const origin = 'https://app.test'

async function find(answer: () => Response | Promise<Response>) {
  const urls: unknown[] = []
  const fetch = async (url: unknown) => {
    urls.push(url)
    return answer()
  }
  return { api: await findApi({ fetchBytes: createFetchBytes({ fetch, timeoutMs: 1_000 }) }, origin), urls }
}

test('a web app names its service in its configuration', async () => {
  expect(await find(() => json({ apiBaseUrl: 'https://api.test/v1', chainId: 1 }))).toEqual({
    api: 'https://api.test/v1',
    urls: ['https://app.test/config.json'],
  })
})

test.each<[string, () => Response | Promise<Response>]>([
  ['that has none', () => json({ code: 'not_found' }, 404)],
  ['that answers everything with its page', html],
  ['that redirects', () => new Response(null, { status: 302, headers: { location: 'https://elsewhere.test/' } })],
  ['that cannot be reached', () => Promise.reject(new TypeError('Failed to fetch'))],
  ['that sends no JSON', () => new Response('apiBaseUrl')],
  ['that sends too much', () => new Response('x'.repeat(2_097_153))],
  ['that sends a list', () => json([{ apiBaseUrl: 'https://api.test' }])],
  ['that names no service', () => json({ chainId: 1 })],
  ['that names no web address', () => json({ apiBaseUrl: 'file:///etc/passwd' })],
  ['that names credentials', () => json({ apiBaseUrl: 'https://user:secret@api.test' })],
])('an origin %s is taken for the service itself', async (_name, answer) => {
  expect((await find(answer)).api).toBe(origin)
})
