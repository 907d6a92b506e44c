import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { findClosedUrl, startLoopback } from '../test/loopback.ts'
import { withCode } from '../test/withCode.ts'
import { VerifierError } from './errors.ts'
import { createFetchBytes } from './fetchBytes.ts'

const deps = { fetch, timeoutMs: 5_000 }

async function get(listener: RequestListener, { timeoutMs = 5_000, maxBytes = 64 } = {}) {
  const { url } = await startLoopback(listener)
  return createFetchBytes({ ...deps, timeoutMs })({ url: `${url}/start`, maxBytes, accept: 'text/plain' })
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe('an untrusted server', () => {
  test('gets requests without compression, and with cookies only for the page’s own host', async () => {
    let headers = {}
    await get((request, response) => {
      headers = request.headers
      response.end('hello')
    })
    expect(headers).toMatchObject({ accept: 'text/plain', 'accept-encoding': 'identity' })
    for (const name of ['cookie', 'authorization', 'referer']) expect(headers).not.toHaveProperty(name)
  })

  test('may send exactly the limit, and no byte more', async () => {
    expect(text(await get((_, response) => response.end('a'.repeat(64))))).toHaveLength(64)
    await expect(get((_, response) => response.end('a'.repeat(65)))).rejects.toThrow(
      withCode('fetch_failed', 'more than 64 bytes'),
    )
  })

  test('that sends endlessly is cut off at the limit', async () => {
    let isClosed: () => void
    const closed = new Promise<void>((resolve) => {
      isClosed = resolve
    })
    const endless: RequestListener = (_, response) => {
      const write = () => {
        while (!response.destroyed && response.write('a'.repeat(1024))) {}
      }
      response.on('drain', write)
      response.on('close', () => isClosed())
      write()
    }
    await expect(get(endless)).rejects.toThrow(withCode('fetch_failed', 'more than 64 bytes'))
    await closed
  })

  test.each([404, 410, 429, 500, 503, 206, 204])('that returns %i is rejected', async (status) => {
    await expect(get((_, response) => response.writeHead(status).end())).rejects.toThrow(
      withCode('fetch_failed', `returned ${status}`),
    )
    await expect(get((_, response) => response.writeHead(status).end())).rejects.toMatchObject({ status })
  })

  test('that sends a web page is rejected', async () => {
    const page: RequestListener = (_, response) => response.writeHead(200, { 'content-type': 'Text/HTML' }).end('<p>')
    await expect(get(page)).rejects.toThrow(withCode('fetch_failed', 'a web page'))
  })

  test('that never responds runs into the time limit', async () => {
    await expect(get(() => {}, { timeoutMs: 50 })).rejects.toThrow(withCode('fetch_failed', 'within 0.05 s'))
  })

  test('that never responds runs into the time limit, even if the fetch cannot be aborted', async () => {
    const fetchBytes = createFetchBytes({ fetch: () => new Promise(() => {}), timeoutMs: 50 })
    const failure = fetchBytes({ url: 'https://gateway.example/', maxBytes: 1, accept: '*/*' })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'within 0.05 s'))
  })

  test('that stops in the middle of its response runs into the time limit', async () => {
    const stalling: RequestListener = (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('half')
    }
    await expect(get(stalling, { timeoutMs: 50 })).rejects.toThrow(withCode('fetch_failed', 'within 0.05 s'))
  })

  test('that sends less than it promised is rejected', async () => {
    const truncating: RequestListener = (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('half', () => response.destroy())
    }
    await expect(get(truncating)).rejects.toThrow(withCode('fetch_failed', 'closed the connection early'))
  })

  test('that is not there is reported as unreachable', async () => {
    const url = await findClosedUrl()
    await expect(createFetchBytes(deps)({ url, maxBytes: 1, accept: '*/*' })).rejects.toThrow(
      withCode('fetch_failed', 'could not be reached (ECONNREFUSED)'),
    )
  })

  test('is named in errors only by host, because the path may be a secret', async () => {
    const { url } = await startLoopback((_, response) => response.writeHead(500).end())
    const failure = createFetchBytes(deps)({ url: `${url}/v3/secret?key=secret`, maxBytes: 1, accept: '*/*' })
    await expect(failure).rejects.toThrow(expect.not.objectContaining({ details: expect.stringContaining('secret') }))
  })
})

/** docs/decisions/0012: a page can't see where a redirect leads, so no verifier follows one. */
describe('redirects are not followed', () => {
  const to =
    (status: number, location: string | undefined): RequestListener =>
    (_, response) =>
      response.writeHead(status, location === undefined ? {} : { location }).end()

  test.each<[string, number, string | undefined]>([
    ['to the same server', 302, '/hop1'],
    ['for good', 301, '/hop1'],
    ['to see another', 303, '/hop1'],
    ['with the method kept', 307, '/hop1'],
    ['for good, with the method kept', 308, '/hop1'],
    ['in a loop', 302, '/start'],
    ['to a file', 302, 'file:///etc/passwd'],
    ['to inline data', 302, 'data:text/plain,hello'],
    ['to credentials', 302, 'http://user:secret@127.0.0.1/'],
    ['to nowhere', 302, undefined],
    ['to nonsense', 302, 'http://['],
  ])('%s', async (_, status, location) => {
    const { url, requests } = await startLoopback(to(status, location))
    const failure = createFetchBytes(deps)({ url: `${url}/start`, maxBytes: 64, accept: '*/*' })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'redirects are not followed'))
    expect(requests).toEqual(['GET /start'])
  })

  test('from https down to http', async () => {
    const answer = new Response(null, { status: 302, headers: { location: 'http://gateway.example/' } })
    const failure = createFetchBytes({ ...deps, fetch: async () => answer })({
      url: 'https://gateway.example/',
      maxBytes: 1,
      accept: '*/*',
    })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'gateway.example redirects'))
  })

  test('as in a browser: without status or location', async () => {
    const answer = Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' })
    const failure = createFetchBytes({ ...deps, fetch: async () => answer })({
      url: 'https://gateway.example/',
      maxBytes: 1,
      accept: '*/*',
    })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'gateway.example redirects'))
  })

  test('of a POST, whose body is only for the first server', async () => {
    const { url, requests } = await startLoopback(to(307, '/x'))
    const failure = createFetchBytes(deps)({ url, maxBytes: 1, accept: '*/*', body: '{}' })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'redirects'))
    expect(requests).toEqual(['POST /'])
  })
})

describe('every error names only the host', () => {
  const url = 'https://gateway.test/secret-path'
  const ask = (answer: () => Response | Promise<Response>) => {
    const sent: unknown[][] = []
    const fetch = async (...parameters: unknown[]) => {
      sent.push(parameters)
      return answer()
    }
    const result = createFetchBytes({ fetch, timeoutMs: 30_000 })({
      url,
      maxBytes: 10,
      accept: 'application/vnd.ipld.raw',
    })
    return { result, sent }
  }

  test('returns bytes unchanged, and sends nothing about the reader', async () => {
    const { result, sent } = ask(() => new Response(new Uint8Array([1, 2, 3])))
    expect(await result).toEqual(new Uint8Array([1, 2, 3]))
    expect(sent).toEqual([
      [
        url,
        expect.objectContaining({
          method: 'GET',
          credentials: 'same-origin',
          referrerPolicy: 'no-referrer',
          redirect: 'manual',
        }),
      ],
    ])
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
    ['too many bytes', () => new Response(new Uint8Array(11)), /sent more than 10 bytes/],
    ['a web page', () => new Response('<p>', { headers: { 'content-type': 'Text/HTML' } }), /a web page/],
    ['a refusal', () => new Response(null, { status: 451 }), /returned 451/],
    ['no network', () => Promise.reject(new TypeError('Failed to fetch')), /could not be reached/],
    ['bytes that break off', broken, /closed the connection/],
    ['a late answer', () => Promise.reject(new DOMException('late', 'TimeoutError')), /within 30 s/],
  ])('%s', async (_name, answer, message) => {
    const error = await ask(answer).result.catch((reason) => reason)
    expect(error).toBeInstanceOf(VerifierError)
    expect(error.details).toMatch(message)
    expect(error.details).toMatch(/^gateway\.test /)
    expect(error.details).not.toContain('secret')
  })
})
