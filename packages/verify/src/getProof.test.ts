import { afterEach, expect, test, vi } from 'vitest'
import { getProof, ProofError } from './getProof.ts'
import { html, issueReceipt, json, slug, toProof } from './service.fake.ts'

const proof = toProof(await issueReceipt())
const apiBaseUrl = 'https://api.test/'

afterEach(() => {
  vi.unstubAllGlobals()
})

function ask(answer: () => Response | Promise<Response>, asked = slug) {
  const fetch = vi.fn(async (_url: string) => answer())
  vi.stubGlobal('fetch', fetch)
  return { result: getProof({ apiBaseUrl, slug: asked }), fetch }
}

test('an answer is taken as it is, also one that contradicts itself', async () => {
  const { result, fetch } = ask(() => json({ ...proof, onchainTxHash: null, onchainBlockNumber: null }))
  expect(await result).toMatchObject({ status: 'complete', onchainTxHash: null })
  expect(fetch.mock.calls[0]?.[0]).toBe(`https://api.test/proof/${slug}`)
})

test.each<[string, () => Response | Promise<Response>, string, RegExp]>([
  ['an unknown slug', () => json({ code: 'proof_not_found' }, 404), 'not_found', /404/],
  ['a failure', () => json({}, 503), 'unavailable', /503/],
  ['no network', () => Promise.reject(new TypeError('Failed to fetch')), 'unavailable', /could not be reached/],
  ['a web page', html, 'not_a_proof', /web page/],
  ['no JSON', () => new Response('hello'), 'not_a_proof', /something else than JSON/],
  ['null', () => json(null), 'not_a_proof', /something else than a proof/],
  ['another proof', () => json({ ...proof, slug: 'a'.repeat(22) }), 'not_a_proof', /another slug/],
  ['a short hash', () => json({ ...proof, txHash: '0x12' }), 'not_a_proof', /its txHash/],
  ['an unknown status', () => json({ ...proof, status: 'done' }), 'not_a_proof', /its status/],
  [
    'a member that is missing',
    () => json({ ...proof, kmsQuoteVerified: undefined }),
    'not_a_proof',
    /its kmsQuoteVerified/,
  ],
  ['more than any proof', () => new Response('x'.repeat(1_048_577)), 'unavailable', /more than 1048576 bytes/],
])('%s is told', async (_name, answer, code, message) => {
  const error = await ask(answer).result.catch((reason) => reason)
  expect(error).toBeInstanceOf(ProofError)
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
})

test('a slug is one segment of the path, or it is not asked for', async () => {
  const { result, fetch } = ask(() => json({}, 404), '../auth/me')
  await result.catch(() => {})
  expect(fetch.mock.calls[0]?.[0]).toBe('https://api.test/proof/..%2Fauth%2Fme')
  for (const bad of ['', '.', '..']) {
    const asked = ask(() => json({}), bad)
    await expect(asked.result).rejects.toMatchObject({ code: 'not_found' })
    expect(asked.fetch).not.toHaveBeenCalled()
  }
})
