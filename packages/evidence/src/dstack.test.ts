import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createRawServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromHex, toHex } from '@countersign/protocol'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { codeOf, createGate, fakeQuote, fakeReportData } from '../test/evidence.ts'
import { createDstackQuoteSource } from './dstack.ts'

type Handler = (body: string, response: ServerResponse, request: IncomingMessage) => void | Promise<void>

let directory: string
let socketPath: string
const servers: Server[] = []

beforeEach(async () => {
  // Tests control the time limits. Node's sockets keep real time.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  directory = await mkdtemp(join(tmpdir(), 'countersign-dstack-'))
  socketPath = join(directory, 'dstack.sock')
})

afterEach(async () => {
  vi.useRealTimers()
  for (const server of servers.splice(0)) {
    if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function')
      server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await rm(directory, { recursive: true })
})

async function listen(server: Server) {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))
}

async function serve(handler: Handler) {
  await listen(
    createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      await handler(body, response, request)
    }),
  )
  return createDstackQuoteSource({ socketPath })
}

/** The response of an honest agent, with any field changed. */
function answer(body: string, changes: Record<string, unknown> = {}) {
  const reportData = JSON.parse(body).report_data as string
  const quote = toHex(fakeQuote(fromHex(reportData)))
  return JSON.stringify({ quote, event_log: '[]', report_data: reportData, vm_config: '{}', ...changes })
}

const honest: Handler = (body, response) => void response.end(answer(body))

describe('dstack GetQuote', () => {
  test('sends the report data as 128 hex digits, unhashed, and returns quote and event log', async () => {
    let seen: unknown
    const source = await serve((body, response, request) => {
      seen = [request.method, request.url, request.headers['content-type'], JSON.parse(body)]
      response.end(answer(body, { event_log: '[{"imr":3}]' }))
    })
    const reportData = fakeReportData()
    expect(source.mode).toBe('hardware')
    expect(await source.getQuote(reportData)).toEqual({ quote: fakeQuote(reportData), eventLog: '[{"imr":3}]' })
    expect(seen).toEqual(['POST', '/GetQuote', 'application/json', { report_data: toHex(reportData) }])
  })

  test('accepts a quote with a 0x prefix', async () => {
    const source = await serve((body, response) => {
      response.end(answer(body, { quote: `0x${toHex(fakeQuote(fakeReportData()))}` }))
    })
    expect((await source.getQuote(fakeReportData())).quote).toEqual(fakeQuote(fakeReportData()))
  })

  test('accepts a response without the fields of later versions', async () => {
    const source = await serve((body, response) => {
      response.end(answer(body, { report_data: undefined, vm_config: undefined }))
    })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('none')
  })

  test('joins a response that is split inside a character', async () => {
    const source = await serve(async (body, response) => {
      for (const byte of Buffer.from(
        answer(body, { quote: toHex(fakeQuote(fakeReportData())).slice(0, 2000), event_log: 'é' }),
      )) {
        response.write(Uint8Array.of(byte))
      }
      response.end()
    })
    expect((await source.getQuote(fakeReportData())).eventLog).toBe('é')
  })

  test('does not use the socket for report data of a wrong length', async () => {
    let connections = 0
    const source = await serve((body, response, request) => {
      connections++
      return honest(body, response, request)
    })
    expect(await codeOf(source.getQuote(new Uint8Array(65)))).toBe('report_data_length')
    expect(connections).toBe(0)
  })

  test('sends one request at a time, in the order of the calls, and a rejected one does not block the next', async () => {
    let inFlight = 0
    let most = 0
    const order: number[] = []
    const source = await serve(async (body, response) => {
      most = Math.max(most, ++inFlight)
      const seed = fromHex(JSON.parse(body).report_data)[0] ?? -1
      order.push(seed)
      await new Promise(setImmediate)
      inFlight--
      if (seed === 2) response.statusCode = 500
      response.end(answer(body))
    })
    const codes = await Promise.all([1, 2, 3, 4].map((seed) => codeOf(source.getQuote(fakeReportData(seed)))))
    expect(codes).toEqual(['none', 'agent_refused', 'none', 'none'])
    expect(order).toEqual([1, 2, 3, 4])
    expect(most).toBe(1)
  })
})

describe('an agent that misbehaves', () => {
  test('a missing socket gives agent_unreachable, with advice to mount it', async () => {
    await expect(createDstackQuoteSource({ socketPath }).getQuote(fakeReportData())).rejects.toMatchObject({
      code: 'agent_unreachable',
      details: expect.stringContaining('mount /var/run/dstack.sock'),
    })
  })

  test('a connection reset before the response gives agent_unreachable', async () => {
    const source = await serve((_body, response) => void response.destroy())
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('agent_unreachable')
  })

  test('a connection reset during the response gives agent_unreachable', async () => {
    const source = await serve((body, response) => {
      response.setHeader('content-length', 100_000)
      response.write(answer(body), () => response.destroy())
    })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('agent_unreachable')
  })

  test('something that does not speak HTTP gives agent_answer_malformed', async () => {
    await listen(createRawServer((socket) => void socket.resume().end('SSH-2.0-OpenSSH_9.9\r\n')))
    const source = createDstackQuoteSource({ socketPath })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('agent_answer_malformed')
  })

  test('an agent that never responds gives evidence_timeout, and its connection is closed without blocking the next call', async () => {
    const [asked, closed] = [createGate(), createGate()]
    const source = await serve((body, response) => {
      if (fromHex(JSON.parse(body).report_data)[0] === 2) return void response.end(answer(body))
      response.on('close', closed.open)
      asked.open()
    })
    const code = codeOf(source.getQuote(fakeReportData(1)))
    await asked.opened
    vi.advanceTimersByTime(29_999)
    const next = codeOf(source.getQuote(fakeReportData(2)))
    vi.advanceTimersByTime(1)
    expect(await code).toBe('evidence_timeout')
    await closed.opened
    expect(await next).toBe('none')
  })

  test('an agent that stops in the middle of its response gives evidence_timeout', async () => {
    const asked = createGate()
    const source = await serve((body, response) => void response.write(answer(body).slice(0, 100), () => asked.open()))
    const code = codeOf(source.getQuote(fakeReportData()))
    await asked.opened
    vi.advanceTimersByTime(30_000)
    expect(await code).toBe('evidence_timeout')
  })

  test.each([201, 204, 302, 400, 404, 500])('status %i gives agent_refused', async (status) => {
    const source = await serve((body, response) => {
      response.writeHead(status, { location: '/GetQuote' }).end(status === 204 ? '' : answer(body))
    })
    await expect(source.getQuote(fakeReportData())).rejects.toMatchObject({
      code: 'agent_refused',
      details: `HTTP ${status}`,
    })
  })

  test('the details have the agent’s reason, cut to 200 characters', async () => {
    const source = await serve((_body, response) => {
      response.writeHead(400).end(JSON.stringify({ error: 'x'.repeat(5000) }))
    })
    await expect(source.getQuote(fakeReportData())).rejects.toMatchObject({ details: `HTTP 400: ${'x'.repeat(200)}` })
  })

  test.each<[string, (body: string) => string | Uint8Array]>([
    ['nothing', () => ''],
    ['a page', () => '<html></html>'],
    ['JSON that is cut', (body) => answer(body).slice(0, -1)],
    ['JSON and more', (body) => `${answer(body)}{}`],
    ['a byte order mark before it', (body) => `\ufeff${answer(body)}`],
    ['null', () => 'null'],
    ['a list', () => '[]'],
    ['an error with status 200', () => '{"error":"no TDX here"}'],
    ['no quote', (body) => answer(body, { quote: undefined })],
    ['a quote that is not a string', (body) => answer(body, { quote: [4, 0] })],
    ['a quote in upper case', (body) => answer(body, { quote: toHex(fakeQuote(fakeReportData())).toUpperCase() })],
    ['a quote of half a byte', (body) => answer(body, { quote: '040' })],
    [
      'a quote in base64',
      (body) => answer(body, { quote: Buffer.from(fakeQuote(fakeReportData())).toString('base64') }),
    ],
    ['a quote with two prefixes', (body) => answer(body, { quote: '0x0x0400' })],
    ['no event log', (body) => answer(body, { event_log: undefined })],
    ['an event log that is not a string', (body) => answer(body, { event_log: [] })],
    ['bytes that are not UTF-8', (body) => Buffer.from(answer(body, { event_log: 'é' }), 'latin1')],
  ])('%s gives agent_answer_malformed', async (_name, make) => {
    const source = await serve((body, response) => void response.end(make(body)))
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('agent_answer_malformed')
  })

  test('an empty quote, as from old agents without TDX, is malformed evidence', async () => {
    const source = await serve((body, response) => void response.end(answer(body, { quote: '' })))
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_malformed')
  })

  test('a quote for other report data gives evidence_mismatch, independent of the agent’s report_data', async () => {
    const source = await serve((body, response) => {
      response.end(answer(body, { quote: toHex(fakeQuote(fakeReportData(99))) }))
    })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_mismatch')
  })

  test('a quote of more than 64 KiB gives evidence_too_large', async () => {
    const source = await serve((body, response) => {
      response.end(answer(body, { quote: toHex(fakeQuote(fakeReportData())) + '00'.repeat(65_536) }))
    })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_too_large')
  })

  test('accepts a response of 1 MiB; one byte more gives evidence_too_large', async () => {
    let size = 1_048_576
    const source = await serve((body, response) => {
      const rest = size - answer(body, { event_log: '' }).length
      response.end(answer(body, { event_log: ' '.repeat(rest) }))
    })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('none')
    size++
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_too_large')
  })

  test('closes the connection of an endless response', async () => {
    const closed = createGate()
    const source = await serve((_body, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) {}
      }
      response.on('drain', more)
      response.on('close', closed.open)
      more()
    })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_too_large')
    await closed.opened
  })
})
