import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { fetchBytes } from './fetchBytes.ts'
import { findClosedUrl, startLoopback } from './loopback.fake.ts'
import { withCode } from './withCode.fake.ts'

const deps = { fetch, timeoutMs: 5_000 }

async function get(listener: RequestListener, { timeoutMs = 5_000, maxBytes = 64 } = {}) {
  const { url } = await startLoopback(listener)
  return fetchBytes({ ...deps, timeoutMs }, { url: new URL(`${url}/start`), maxBytes, accept: 'text/plain' })
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe('a server that nobody trusts', () => {
  test('is asked without credentials, cookies or compression', async () => {
    let headers = {}
    await get((request, response) => {
      headers = request.headers
      response.end('hello')
    })
    expect(headers).toMatchObject({ accept: 'text/plain', 'accept-encoding': 'identity' })
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['cookie', 'authorization', 'referer']))
  })

  test('may send as many bytes as the bound, and not one more', async () => {
    expect(text(await get((_, response) => response.end('a'.repeat(64))))).toHaveLength(64)
    await expect(get((_, response) => response.end('a'.repeat(65)))).rejects.toThrow(
      withCode('fetch_failed', 'more than 64 bytes'),
    )
  })

  test('that sends without end is cut off at the bound', async () => {
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

  test.each([404, 410, 429, 500, 503, 206, 204])('that answers %i is no source', async (status) => {
    await expect(get((_, response) => response.writeHead(status).end())).rejects.toThrow(
      withCode('fetch_failed', `answers ${status}`),
    )
  })

  test('that never answers runs into the time limit', async () => {
    await expect(get(() => {}, { timeoutMs: 50 })).rejects.toThrow(withCode('fetch_failed', 'within 0.05 s'))
  })

  test('that stops in the middle of its answer runs into the time limit', async () => {
    const stalling: RequestListener = (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('half')
    }
    await expect(get(stalling, { timeoutMs: 50 })).rejects.toThrow(withCode('fetch_failed', 'within 0.05 s'))
  })

  test('that sends less than it promised is no source', async () => {
    const truncating: RequestListener = (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('half', () => response.destroy())
    }
    await expect(get(truncating)).rejects.toThrow(withCode('fetch_failed', 'closed the connection early'))
  })

  test('that is not there is said to be out of reach', async () => {
    const url = new URL(await findClosedUrl())
    await expect(fetchBytes(deps, { url, maxBytes: 1, accept: '*/*' })).rejects.toThrow(
      withCode('fetch_failed', 'could not be reached (ECONNREFUSED)'),
    )
  })

  test('errors name the host and not the path, which may be a secret', async () => {
    const { url } = await startLoopback((_, response) => response.writeHead(500).end())
    const failure = fetchBytes(deps, { url: new URL(`${url}/v3/secret?key=secret`), maxBytes: 1, accept: '*/*' })
    await expect(failure).rejects.toThrow(expect.not.objectContaining({ details: expect.stringContaining('secret') }))
  })
})

describe('redirects', () => {
  /** Sends on for so many times, then answers. */
  const hops =
    (count: number): RequestListener =>
    (request, response) => {
      const hop = Number(/\d+$/.exec(request.url ?? '')?.[0] ?? 0)
      if (hop === count) response.end('arrived')
      else response.writeHead(302, { location: `/hop${hop + 1}` }).end()
    }
  const to =
    (location: string | undefined): RequestListener =>
    (_, response) =>
      response.writeHead(302, location === undefined ? {} : { location }).end()

  test('are followed three times', async () => {
    expect(text(await get(hops(3)))).toBe('arrived')
  })

  test('are not followed a fourth time', async () => {
    await expect(get(hops(4))).rejects.toThrow(withCode('fetch_failed', 'redirects more than 3 times'))
  })

  test('in a loop end', async () => {
    await expect(get(to('/start'))).rejects.toThrow(withCode('fetch_failed', 'redirects more than 3 times'))
  })

  test.each([
    ['a file', 'file:///etc/passwd', 'another protocol'],
    ['inline data', 'data:text/plain,hello', 'another protocol'],
    ['credentials', 'http://user:secret@127.0.0.1/', 'with credentials'],
    ['nowhere', undefined, 'without a usable location'],
    ['nonsense', 'http://[', 'without a usable location'],
  ])('to %s are refused', async (_, location, details) => {
    await expect(get(to(location))).rejects.toThrow(withCode('fetch_failed', details))
  })

  test('from https down to http are refused', async () => {
    const answer = new Response(null, { status: 302, headers: { location: 'http://gateway.example/' } })
    const url = new URL('https://gateway.example/')
    const failure = fetchBytes({ ...deps, fetch: async () => answer }, { url, maxBytes: 1, accept: '*/*' })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'from https to http'))
  })

  test('of a POST are refused, since its body is for the first server alone', async () => {
    const { url, requests } = await startLoopback((_, response) => response.writeHead(307, { location: '/x' }).end())
    const failure = fetchBytes(deps, { url: new URL(url), maxBytes: 1, accept: '*/*', body: '{}' })
    await expect(failure).rejects.toThrow(withCode('fetch_failed', 'redirects a POST'))
    expect(requests).toEqual(['POST /'])
  })
})
