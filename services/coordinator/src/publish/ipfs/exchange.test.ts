import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { ServiceError } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { exchange, parseAnswer, toAuthorization, toServiceUrl } from './exchange.ts'

const { signal } = new AbortController()
const ask = (fetch: (url: string, init: RequestInit) => Promise<Response>, given = signal) =>
  exchange({ fetch }, { step: 'step', url: 'https://pins.example/secret-path', init: {}, signal: given })

describe('exchange', () => {
  test('does not follow a redirect', async () => {
    let redirected = 0
    const server = createServer((request, response) => {
      if (request.url === '/there') redirected += 1
      response.writeHead(302, { location: '/there' }).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/here`
    const asked = exchange({ fetch }, { step: 'step', url, init: {}, signal })
    await expect(asked).rejects.toMatchObject({ code: 'pin_unavailable' })
    expect(redirected).toBe(0)
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  test('rejects a truncated answer', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-length': '10' })
      response.write('{"a"')
      setImmediate(() => response.destroy())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const asked = exchange({ fetch }, { step: 'step', url, init: {}, signal })
    await expect(asked).rejects.toMatchObject({ code: 'pin_unavailable' })
    server.close()
    await once(server, 'close')
  })

  test('keeps the address and fetch’s message out of the error', async () => {
    const error = await ask(() => Promise.reject(new TypeError('cannot fetch https://pins.example/secret-path'))).catch(
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ code: 'pin_unavailable', details: 'step: no answer' })
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret-path')
  })

  test('does not wait for a fetch that ignores its signal', async () => {
    const controller = new AbortController()
    const asked = ask(() => new Promise(() => {}), controller.signal)
    controller.abort()
    await expect(asked).rejects.toMatchObject({ code: 'pin_unavailable', details: 'aborted' })
  })

  test('sends nothing after the signal aborted', async () => {
    let asked = 0
    const fetch = async () => {
      asked += 1
      return new Response()
    }
    await expect(ask(fetch, AbortSignal.abort())).rejects.toMatchObject({ code: 'pin_unavailable' })
    expect(asked).toBe(0)
  })

  test('reads a megabyte, but not one byte more', async () => {
    expect((await ask(async () => new Response(new Uint8Array(1_048_576)))).body.length).toBe(1_048_576)
    const tooLarge = ask(async () => new Response(new Uint8Array(1_048_577)))
    await expect(tooLarge).rejects.toMatchObject({ code: 'pin_mismatch' })
  })

  test('reports other failures of the body as unavailable', async () => {
    const body = new ReadableStream({
      pull: (controller) => controller.error(new ServiceError('internal', 'another failure')),
    })
    const failing = ask(async () => new Response(body))
    await expect(failing).rejects.toMatchObject({ code: 'pin_unavailable', details: 'step: no answer' })
  })
})

describe('parseAnswer', () => {
  const schema = z.object({ a: z.string() })
  const parse = (status: number, text: string) =>
    parseAnswer(schema, { step: 'step', status, body: new TextEncoder().encode(text) })

  test('parses JSON of the right shape', () => {
    expect(parse(200, '{"a":"b","c":1}')).toEqual({ a: 'b' })
  })

  test.each(['', '{', '[]', 'null', '{"a":1}', '{"b":"a"}', '<html>'])('rejects %j', (text) => {
    expect(() => parse(200, text)).toThrow(expect.objectContaining({ code: 'pin_unavailable' }))
  })

  test.each([
    [400, 'pin_refused'],
    [401, 'pin_refused'],
    [402, 'pin_refused'],
    [403, 'pin_refused'],
    [404, 'pin_refused'],
    [408, 'pin_unavailable'],
    [413, 'pin_refused'],
    [425, 'pin_unavailable'],
    [429, 'pin_unavailable'],
    [500, 'pin_unavailable'],
    [503, 'pin_unavailable'],
    [204, 'pin_unavailable'],
    [304, 'pin_unavailable'],
  ])('%i is %s', (status, code) => {
    expect(() => parse(status, '{"a":"b"}')).toThrow(expect.objectContaining({ code }))
  })
})

describe('toServiceUrl', () => {
  test.each([
    ['http://127.0.0.1:5001/', 'http://127.0.0.1:5001'],
    ['https://pins.example/a//', 'https://pins.example/a'],
    ['http://ipfs:5001', 'http://ipfs:5001'],
  ])('%s', (text, url) => {
    expect(toServiceUrl(text)).toBe(url)
  })

  test.each([
    '',
    'pins.example',
    'ftp://pins.example',
    'file:///etc',
    'https://user:password@pins.example',
    'https://pins.example/?key=password',
    'https://pins.example/#password',
  ])('rejects %j without quoting it', (text) => {
    expect(() => toServiceUrl(text)).toThrow(TypeError)
    expect(() => toServiceUrl(text)).not.toThrow(/password|pins\.example/)
  })

  test('rejects a token over plain http', () => {
    expect(() => toServiceUrl('http://ipfs:5001', { token: 'x' })).toThrow(TypeError)
    expect(() => toServiceUrl('http://127.0.0.1.evil.example', { token: 'x' })).toThrow(TypeError)
    expect(toServiceUrl('http://localhost:5001', { token: 'x' })).toBe('http://localhost:5001')
    expect(toServiceUrl('https://ipfs', { token: 'x' })).toBe('https://ipfs')
  })
})

test.each(['', 'two words', 'line\nbreak', 'naïve'])('rejects the token %j without quoting it', (token) => {
  expect(() => toAuthorization(token)).toThrow('invalid pin service token: expected printable ASCII without spaces')
})
