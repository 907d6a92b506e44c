import { afterEach, expect, test, vi } from 'vitest'
import { FetchError, fetchBytes } from './fetchBytes.ts'

const url = 'https://gateway.test/secret-path'
const ask = (answer: () => Response | Promise<Response>, maxBytes = 10) => {
  const fetch = vi.fn(async () => answer())
  vi.stubGlobal('fetch', fetch)
  return { result: fetchBytes({ url, maxBytes, accept: 'application/vnd.ipld.raw' }), fetch }
}
afterEach(() => {
  vi.unstubAllGlobals()
})

test('bytes come as they are, and nothing of the visitor goes along', async () => {
  const { result, fetch } = ask(() => new Response(new Uint8Array([1, 2, 3])))
  expect(await result).toEqual(new Uint8Array([1, 2, 3]))
  expect(fetch).toHaveBeenCalledWith(
    url,
    expect.objectContaining({ method: 'GET', credentials: 'omit', referrerPolicy: 'no-referrer' }),
  )
})

const broken = () =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(3))
        controller.error(new TypeError('network error'))
      },
    }),
  )

test.each<[string, () => Response | Promise<Response>, RegExp]>([
  ['too many bytes', () => new Response(new Uint8Array(11)), /sends more than 10 bytes/],
  ['a web page', () => new Response('<p>', { headers: { 'content-type': 'Text/HTML' } }), /a web page/],
  ['a refusal', () => new Response(null, { status: 451 }), /answers 451/],
  ['no network', () => Promise.reject(new TypeError('Failed to fetch')), /could not be reached/],
  ['bytes that break off', broken, /broke off/],
  ['a late answer', () => Promise.reject(new DOMException('late', 'TimeoutError')), /within 30 s/],
])('%s is told by the host alone', async (_name, answer, message) => {
  const error = await ask(answer).result.catch((reason) => reason)
  expect(error).toBeInstanceOf(FetchError)
  expect(error.message).toMatch(message)
  expect(error.message).toMatch(/^gateway\.test /)
  expect(error.message).not.toContain('secret')
})
