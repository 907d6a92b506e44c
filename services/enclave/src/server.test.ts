import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { callerHeaders, enclavePaths, rootSecretPaths } from '@countersign/protocol'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { App } from './serveCalls.ts'
import { createBudgets, createTlsIdentity, type RunningServer, startServer } from './server.ts'

const KIB = 1_024
const MAX_BODY = 128 * KIB
const MAX_SIGN_BODY = 4_096 * KIB
/** Kernels buffer much less of an unread body than this. */
const ENDLESS = 64 * 1_024 * KIB

const open: { server: RunningServer; sockets: Socket[] }[] = []
afterEach(async () => {
  for (const { server, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy()
    await server.close()
  }
})

/** A server whose app returns the length of the body. */
async function start(
  changes: Partial<Pick<App, 'admit' | 'handle'>> & {
    onBody?(): Promise<void>
    kind?: 'http' | 'https'
    unreadMs?: number
  } = {},
) {
  const { kind = 'http', unreadMs } = changes
  const bodies: number[] = []
  const budgets = createBudgets()
  const app: App = {
    admit: changes.admit ?? (async () => ({ admitted: undefined })),
    handle:
      changes.handle ??
      (async ({ body }) => {
        bodies.push(body.length)
        await changes.onBody?.()
        return { status: 200, body: { length: body.length } }
      }),
    isStopping: () => false,
    stop: async () => {},
  }
  const tls = kind === 'https' ? createTlsIdentity(Date.now()) : undefined
  const server = await startServer(app, { kind, host: '127.0.0.1', port: 0 }, tls, {
    budgets,
    ...(unreadMs === undefined ? {} : { unreadMs }),
  })
  const sockets: Socket[] = []
  open.push({ server, sockets })
  const dial = async (): Promise<Socket> => {
    const socket = connect(Number(new URL(server.address).port), '127.0.0.1')
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }
  /** A connection over TLS, if the server uses it. */
  const secure = async (): Promise<Socket> => {
    const plain = await dial()
    if (kind === 'http') return plain
    const socket = connectTls({ socket: plain, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    return socket
  }
  return { bodies, budgets, dial, secure }
}

type Headers = Record<string, string | number>
const signed: Headers = { [callerHeaders.signature]: 'ab'.repeat(64) }
const toHead = (path: string, headers: Headers) =>
  [`POST ${path} HTTP/1.1`, 'host: enclave', ...Object.entries(headers).map((pair) => pair.join(': '))].join('\r\n') +
  '\r\n\r\n'

/** Everything that arrives until the other side closes. */
async function readToEnd(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += chunk
  return text
}

/** One complete response on a connection that stays open. */
async function readAnswer(socket: Socket): Promise<string> {
  let text = ''
  while (!/\r\n\r\n\{.*\}$/s.test(text)) text += (await once(socket, 'data'))[0]
  return text
}

describe('bodies', () => {
  test.each([
    ['of another call', enclavePaths.openSession, signed, MAX_BODY],
    ['of a call to sign that is not signed', enclavePaths.sign, {}, MAX_BODY],
    ['of an unknown path', '/nowhere', signed, MAX_BODY],
    ['of an enclave that asks for the root secret', rootSecretPaths.transfer, signed, MAX_BODY],
    ['of a custodian', rootSecretPaths.share, {}, MAX_BODY],
    ['of a signed call to sign', enclavePaths.sign, signed, MAX_SIGN_BODY],
  ])(
    '%s: as long as allowed is read, one byte more is 413 and the connection closed',
    async (_, path, headers, max) => {
      const { dial, bodies } = await start()
      const allowed = await dial()
      allowed.write(toHead(path, { ...headers, 'content-length': max }))
      allowed.write(Buffer.alloc(max))
      expect(await readAnswer(allowed)).toMatch(/^HTTP\/1\.1 200 .*connection: keep-alive.*\{"length":\d+\}$/is)
      expect(bodies).toEqual([max])

      const refused = await dial()
      refused.write(toHead(path, { ...headers, 'content-length': max + 1 }))
      refused.write(Buffer.alloc(max + 1))
      const answer = await readToEnd(refused)
      expect(answer).toMatch(/^HTTP\/1\.1 413 .*connection: close/is)
      expect(answer).toContain('"code":"body_too_large"')
      expect(bodies).toEqual([max])
    },
  )

  test.each([
    ['that says it is longer than it will ever be', { 'content-length': 2 ** 40 }],
    ['in chunks without an end', { 'transfer-encoding': 'chunked' }],
  ])('stops reading a body %s and closes the connection', async (_, headers) => {
    const { dial, bodies } = await start()
    const socket = await dial()
    // Closing a connection with unread bytes resets it, which may lose the response.
    socket.on('error', () => {})
    socket.resume()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(toHead(enclavePaths.openSession, headers))
    const chunk = Buffer.alloc(64 * KIB)
    const frame =
      'transfer-encoding' in headers ? Buffer.concat([Buffer.from('10000\r\n'), chunk, Buffer.from('\r\n')]) : chunk
    let sent = 0
    while (!socket.destroyed && sent < ENDLESS) {
      sent += chunk.length
      if (!socket.write(frame)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
    }
    expect(sent).toBeLessThan(ENDLESS)
    await closed
    expect(bodies).toEqual([])
  })

  test('rejects chunks of one byte, which would use more memory than is counted, without reading them', async () => {
    const { dial, bodies, budgets } = await start()
    const socket = await dial()
    // Closing a connection with unread bytes resets it.
    socket.on('error', () => {})
    const answer = readAnswer(socket)
    socket.write(toHead(enclavePaths.openSession, { 'transfer-encoding': 'chunked' }))
    socket.write(`${'1\r\nx\r\n'.repeat(100)}0\r\n\r\n`)
    expect(await answer).toMatch(/^HTTP\/1\.1 400 .*connection: close.*"code":"invalid_request"/is)
    expect([bodies, budgets.unknown.peak()]).toEqual([[], 0])
  })

  test('an oversized body affects no other caller', async () => {
    const { dial, bodies } = await start()
    const [large, small] = await Promise.all([dial(), dial()])
    small.write(toHead(enclavePaths.attest, { 'content-length': 2 }))
    large.write(toHead(enclavePaths.attest, { 'content-length': MAX_BODY + 1 }))
    large.write(Buffer.alloc(MAX_BODY + 1))
    expect(await readToEnd(large)).toContain(' 413 ')
    small.write('{}')
    expect(await readAnswer(small)).toContain(' 200 ')
    expect(bodies).toEqual([2])
  })

  test('a body that is cut off does not reach the app', async () => {
    const { dial, bodies } = await start()
    const gone = await dial()
    gone.write(toHead(enclavePaths.attest, { 'content-length': 100 }))
    gone.write('half')
    gone.destroy()
    const socket = await dial()
    socket.write(`${toHead(enclavePaths.attest, { 'content-length': 2 })}{}`)
    await readAnswer(socket)
    expect(bodies).toEqual([2])
  })
})

describe('400 unknown callers with a signature', () => {
  const STRANGERS = 400
  const BODY = 256 * KIB
  const body = Buffer.alloc(BODY)
  const head = (headers: Headers = {}) => toHead(enclavePaths.sign, { ...signed, ...headers, 'content-length': BODY })

  test('are rejected before their bodies are read', async () => {
    const refusal = { status: 401, body: { error: { code: 'caller_unknown', message: 'who?' } } }
    const { dial, bodies, budgets } = await start({ admit: async () => ({ refusal }) })
    const answers = await Promise.all(
      Array.from({ length: STRANGERS }, async () => {
        const socket = await dial()
        const answer = readAnswer(socket)
        socket.write(head())
        socket.write(body)
        return answer
      }),
    )
    expect(answers.every((answer) => answer.includes('caller_unknown'))).toBe(true)
    expect(bodies).toEqual([])
    expect([budgets.known.peak(), budgets.unknown.peak()]).toEqual([0, 0])
  })

  test('share 16 MiB if they name a known key, while known callers are served', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const known = { caller: 'ab'.repeat(32), bodyHash: 'cd'.repeat(32) }
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    let open = STRANGERS
    const count = () => {
      open -= 1
      if (open === 0) settle()
    }
    let isFirst = true
    const { dial, bodies, budgets } = await start({
      admit: async ({ headers }) => ({ admitted: headers['x-known'] === undefined ? undefined : known }),
      onBody: async () => {
        if (isFirst) count()
        if (isFirst) await released
      },
    })
    const answers = Array.from({ length: STRANGERS }, async () => {
      const socket = await dial()
      const answer = readAnswer(socket)
      socket.write(head())
      socket.write(body)
      const text = await answer
      if (text.includes('"code":"overloaded"')) count()
      return text
    })
    // Each was either rejected or is being answered.
    await settled
    isFirst = false
    const waiting = bodies.length
    expect(budgets.unknown.peak()).toBeLessThanOrEqual(16 * KIB * KIB)
    expect(budgets.unknown.held()).toBe(waiting * BODY)
    expect(waiting).toBeLessThanOrEqual((16 * KIB * KIB) / BODY)

    const caller = await dial()
    const answer = readAnswer(caller)
    caller.write(toHead(enclavePaths.sign, { ...signed, 'x-known': 1, 'content-length': MAX_SIGN_BODY }))
    caller.write(Buffer.alloc(MAX_SIGN_BODY))
    expect(await answer).toContain(' 200 ')
    expect(budgets.known.peak()).toBe(MAX_SIGN_BODY)

    release()
    const texts = await Promise.all(answers)
    expect(texts.filter((text) => text.includes(' 200 '))).toHaveLength(waiting)
    expect(texts.filter((text) => / 503 .*"code":"overloaded"/s.test(text))).toHaveLength(STRANGERS - waiting)
    expect([budgets.known.held(), budgets.unknown.held()]).toEqual([0, 0])
  })

  test('leave nothing behind when they disconnect midway', async () => {
    const { dial, bodies, budgets } = await start()
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = await dial()
        socket.write(head())
        socket.write(body.subarray(0, BODY / 2))
        return socket
      }),
    )
    await expect.poll(() => budgets.unknown.held()).toBe((20 * BODY) / 2)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => budgets.unknown.held()).toBe(0)
    expect(bodies).toEqual([])
  })
})

describe('connections', () => {
  const known = { caller: 'ab'.repeat(32), bodyHash: 'cd'.repeat(32) }
  const toRequest = (headers: Headers = {}) => `${toHead(enclavePaths.attest, { ...headers, 'content-length': 2 })}{}`
  const admit: App['admit'] = async ({ headers }) => ({
    admitted: headers['x-known'] === undefined ? undefined : known,
  })

  /** A connection with an admitted call. */
  async function dialKnown(dial: () => Promise<Socket>): Promise<Socket> {
    const socket = await dial()
    socket.write(toRequest({ 'x-known': 1 }))
    expect(await readAnswer(socket)).toContain(' 200 ')
    return socket
  }

  test('accepts 512 of known callers at a time; another is closed without a response, and accepted when one has left', async () => {
    const { dial } = await start({ admit })
    const sockets = await Promise.all(Array.from({ length: 512 }, () => dialKnown(dial)))
    const surplus = await dial()
    surplus.on('error', () => {})
    surplus.write(toRequest())
    expect(await readToEnd(surplus).catch(() => '')).toBe('')

    sockets[0]?.destroy()
    await untilServed(dial, toRequest())
  })

  test.each([
    ['http', 1, 447],
    ['http', 100, 411],
    ['https', 100, 411],
  ] as const)(
    '%s: 600 silent ones keep no caller out, and the %i connections of known callers stay',
    async (kind, count, left) => {
      const { dial, secure } = await start({ admit, kind })
      const callers = await Promise.all(Array.from({ length: count }, () => dialKnown(secure)))
      const silent = await Promise.all(Array.from({ length: 600 }, dial))
      for (const socket of silent) socket.on('error', () => {}).resume()
      // Connections are accepted in order, so all silent ones come before this one.
      const late = await secure()
      late.write(toRequest())
      expect(await readAnswer(late)).toContain(' 200 ')
      await expect.poll(() => silent.filter(({ closed }) => !closed).length).toBe(left)
      for (const caller of callers) {
        caller.write(toRequest({ 'x-known': 1 }))
        expect(await readAnswer(caller)).toContain(' 200 ')
      }
    },
  )

  test.each([
    ['http', 'calls', toRequest()],
    ['https', 'calls', toRequest()],
    ['http', 'calls without a host', 'GET /health HTTP/1.1\r\n\r\n'],
    ['http', 'calls that expect something', toRequest({ expect: 'something' })],
    ['http', 'calls in chunks', `${toHead(enclavePaths.attest, { 'transfer-encoding': 'chunked' })}0\r\n\r\n`],
  ] as const)(
    '%s: 100 with 500 %s each that wait for no answer are closed, and at most one call of each is answered',
    async (kind, _, request) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      const { secure, bodies } = await start({ kind, onBody: () => released })
      const seen = watchCalls()
      const pipelined = Buffer.from(request.repeat(500))
      for (const socket of await Promise.all(Array.from({ length: 100 }, secure))) {
        socket.on('error', () => {}).pause()
        socket.write(pipelined)
      }
      await expect.poll(() => [...seen.keys()].filter(({ destroyed }) => destroyed).length).toBe(100)
      release()
      expect(bodies.length).toBeLessThanOrEqual(100)
      // The parser also uses memory for the rest of what it has read.
      expect(Math.max(...seen.values())).toBeLessThanOrEqual(2)
    },
  )

  test.each(['http', 'https'] as const)('%s: a caller that waits for each response is never closed', async (kind) => {
    const { secure, bodies } = await start({ kind, admit })
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const socket = await secure()
        for (let call = 0; call < 200; call += 1) {
          const answer = readAnswer(socket)
          socket.write(toRequest({ 'x-known': 1 }))
          expect(await answer).toContain(' 200 ')
        }
      }),
    )
    expect(bodies).toHaveLength(1_600)
  })

  test.each(['http', 'https'] as const)(
    '%s: a caller that does not read its response is closed after a time limit',
    async (kind) => {
      // More than kernels buffer of it.
      const text = 'x'.repeat(ENDLESS / 4)
      const { secure } = await start({ kind, unreadMs: 50, handle: async () => ({ status: 200, body: { text } }) })
      const seen = watchCalls()
      const socket = await secure()
      socket.on('error', () => {}).pause()
      socket.write(toRequest())
      await expect.poll(() => [...seen.keys()].map(({ destroyed }) => destroyed)).toEqual([true])
    },
  )

  /** The number of calls per connection, by the server's sockets. */
  function watchCalls(): Map<Socket, number> {
    const seen = new Map<Socket, number>()
    const count = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      seen.set(socket, (seen.get(socket) ?? 0) + 1)
    }
    subscribe('http.server.request.start', count)
    onTestFinished(() => void unsubscribe('http.server.request.start', count))
    return seen
  }

  /** The server notices a closed connection with a delay. */
  async function untilServed(dial: () => Promise<Socket>, request: string) {
    for (;;) {
      const socket = await dial()
      socket.on('error', () => {})
      socket.write(request)
      const answer = await Promise.race([
        readAnswer(socket),
        new Promise<string>((resolve) => socket.once('close', () => resolve(''))),
      ])
      if (answer.includes(' 200 ')) return
    }
  }
})
