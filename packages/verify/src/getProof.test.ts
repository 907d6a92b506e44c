import { expect, test } from 'vitest'
import { issue, slug, toProof } from '../test/issues.ts'
import { html, json } from '../test/network.ts'
import { VerifierError } from './errors.ts'
import { createFetchBytes } from './fetchBytes.ts'
import { findApi, getProof } from './getProof.ts'

const proof = toProof(await issue())

function ask(answer: () => Response | Promise<Response>, asked = slug) {
  const urls: unknown[] = []
  const fetch = async (url: unknown) => {
    urls.push(url)
    return answer()
  }
  const fetchBytes = createFetchBytes({ fetch, timeoutMs: 1_000 })
  return { result: getProof({ fetchBytes }, { api: 'https://api.test/', slug: asked }), urls }
}

test('returns a response as it is, even if it contradicts itself', async () => {
  const { result, urls } = ask(() => json({ ...proof, onchainTxHash: null, onchainBlockNumber: null }))
  expect(await result).toMatchObject({ status: 'complete', onchainTxHash: null })
  expect(urls).toEqual([`https://api.test/proof/${slug}`])
})

test.each<[string, () => Response | Promise<Response>, number | undefined, RegExp]>([
  ['a failure', () => json({}, 503), 503, /503/],
  ['no network', () => Promise.reject(new TypeError('Failed to fetch')), undefined, /could not be reached/],
  ['a web page', html, 200, /web page/],
  ['no JSON', () => new Response('hello'), 200, /no JSON/],
  ['null', () => json(null), 200, /no proof/],
  ['another proof', () => json({ ...proof, slug: 'a'.repeat(22) }), 200, /another slug/],
  ['a short hash', () => json({ ...proof, txHash: '0x12' }), 200, /its txHash/],
  ['an unknown status', () => json({ ...proof, status: 'done' }), 200, /its status/],
  ['a member that is missing', () => json({ ...proof, kmsQuoteVerified: undefined }), 200, /its kmsQuoteVerified/],
  ['more than any proof', () => new Response('x'.repeat(1_048_577)), undefined, /more than 1048576 bytes/],
])('%s is no proof', async (_name, answer, status, message) => {
  const error = await ask(answer).result.catch((reason) => reason)
  expect(error).toBeInstanceOf(VerifierError)
  expect(error).toMatchObject({ code: 'fetch_failed', status, details: expect.stringMatching(message) })
})

test('an unknown slug gives proof_not_found, not fetch_failed', async () => {
  await expect(ask(() => json({ code: 'proof_not_found' }, 404)).result).rejects.toMatchObject({
    code: 'proof_not_found',
    status: 404,
    details: 'api.test doesn’t know this slug',
  })
})

test('a response that is not a proof suggests that the service may be elsewhere', async () => {
  for (const answer of [html, () => json(null)]) {
    await expect(ask(answer).result).rejects.toMatchObject({ need: 'service' })
  }
  await expect(ask(() => json({}, 503)).result).rejects.toMatchObject({ need: undefined })
})

test('rejects a slug of more than one path segment without a request', async () => {
  for (const bad of ['', '.', '..', '../auth/me']) {
    const asked = ask(() => json({}), bad)
    await expect(asked.result).rejects.toMatchObject({ code: 'proof_not_found', status: 404 })
    expect(asked.urls).toEqual([])
  }
})

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
