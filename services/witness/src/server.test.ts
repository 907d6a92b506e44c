import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { hashOrigin, MAX_ADD_CHECKPOINT_BYTES } from '@countersign/log'
import { startService } from '@countersign/testing/launcher'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { origin } from '../../../packages/log/test/logs.ts'
import { createTestWitness, type LoggedLine, toRequest } from '../test/witness.ts'
import { type RunningServer, serveMetrics, serveWitness } from './server.ts'

const statuses: number[] = []
const lines: LoggedLine[] = []
const add = (line: LoggedLine) => void lines.push(line)
let server: RunningServer
beforeAll(async () => {
  const deps = { witness: createTestWitness().witness, count: (status: number) => void statuses.push(status) }
  server = await serveWitness({ ...deps, log: { info: add, warn: add, error: add } }, { host: '127.0.0.1', port: 0 })
})
afterAll(() => server.close())
const call = (path: string, init: RequestInit = {}) => fetch(`${server.address}${path}`, init)
const post = (body: BodyInit) => call('/add-checkpoint', { method: 'POST', body })

describe('over http', () => {
  test('responses have the content types of the protocol', async () => {
    const conflict = await post(toRequest({ oldSize: 5, size: 8 }))
    expect([conflict.status, conflict.headers.get('content-type'), await conflict.text()]).toEqual([
      409,
      'text/x.tlog.size',
      '0\n',
    ])
    const cosigned = await post(toRequest({ oldSize: 0, size: 5 }))
    expect([cosigned.status, cosigned.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(await cosigned.text()).toMatch(/^(— witness\.example\/w1 \S+\n){2}$/)
    const monitored = await call(`/${hashOrigin(origin)}/checkpoint`)
    expect([monitored.status, (await monitored.text()).split('\n')[1]]).toEqual([200, '5'])
    expect(statuses).toEqual([409, 200])
    // A log that requests only one kind gets only that one.
    const headers = { 'countersign-cosignatures': 'ed25519' }
    const body = toRequest({ oldSize: 5, size: 8 })
    const short = await call('/add-checkpoint', { method: 'POST', body, headers })
    expect(await short.text()).toMatch(/^— witness\.example\/w1 \S{1,110}\n$/)
  })

  test.each([
    ['GET', '/add-checkpoint', 405],
    ['POST', `/${'0'.repeat(64)}/checkpoint`, 405],
    ['GET', `/${'0'.repeat(64)}/checkpoint`, 404],
    ['GET', `/${'0'.repeat(64)}/statement/${'a'.repeat(64)}`, 200],
    ['POST', `/${'0'.repeat(64)}/statement/${'a'.repeat(64)}`, 405],
    ['GET', `/${'0'.repeat(64)}/statement/${'a'.repeat(63)}`, 404],
    ['GET', `/${'0'.repeat(64)}/statement/${'A'.repeat(64)}`, 404],
    ['GET', `/${'0'.repeat(64)}/statement/${'a'.repeat(64)}?x`, 404],
    ['GET', '/', 404],
    ['GET', '/metrics', 404],
    ['POST', '/add-checkpoint?x', 404],
    ['POST', '/sign-subtree', 404],
    ['GET', '/../key.json', 404],
    ['POST', '/health', 405],
    ['GET', '/health', 200],
  ])('%s %s: %i', async (method, path, status) => {
    expect((await call(path, { method })).status).toBe(status)
  })

  test('lets pages of any site read a statement, and forbids caching it', async () => {
    const { headers } = await call(`/${hashOrigin(origin)}/statement/${'0'.repeat(64)}`)
    const names = ['content-type', 'access-control-allow-origin', 'cache-control']
    expect(names.map((name) => headers.get(name))).toEqual(['application/json', '*', 'no-store'])
    expect((await call('/health')).headers.get('access-control-allow-origin')).toBeNull()
  })

  test('413: stops reading a body above the limit, with and without a length', async () => {
    const large = new Uint8Array(MAX_ADD_CHECKPOINT_BYTES + 1).fill(0x41)
    expect((await post(large)).status).toBe(413)
    expect((await post(new Uint8Array(MAX_ADD_CHECKPOINT_BYTES))).status).toBe(400)
    const endless = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(server.address).port), '127.0.0.1')
      let answer = ''
      let sent = 0
      const send = () => {
        if (sent++ < 40 && socket.writable) socket.write(`2000\r\n${'A'.repeat(0x2000)}\r\n`, send)
      }
      socket.on('data', (chunk) => {
        answer += chunk
      })
      socket.on('close', () => resolve(answer))
      socket.on('error', () => undefined)
      socket.write('POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n', send)
    })
    expect(endless).toMatch(/^HTTP\/1\.1 413 /)
  })

  test('a caller that disconnects midway is neither logged nor counted', async () => {
    const before = statuses.length
    await new Promise<void>((resolve) => {
      const socket = connect(Number(new URL(server.address).port), '127.0.0.1')
      socket.on('close', () => resolve())
      socket.write('POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\nold', () => socket.destroy())
    })
    // The next call arrives after the server has noticed the first disconnect.
    expect((await post('x')).status).toBe(400)
    expect([lines, statuses.length]).toEqual([[], before + 1])
  })

  test('returns 500 without a reason and logs the reason if the record cannot be written', async () => {
    const broken = {
      addCheckpoint: async () => Promise.reject(new Error('no space left on device')),
      getCheckpoint: async () => ({ status: 404, body: '' }),
      getStatement: async () => ({ status: 404, body: '' }),
    }
    const logged: LoggedLine[] = []
    const write = (line: LoggedLine) => void logged.push(line)
    const other = await serveWitness(
      { witness: broken, count: () => undefined, log: { info: write, warn: write, error: write } },
      { host: '127.0.0.1', port: 0 },
    )
    const reply = await fetch(`${other.address}/add-checkpoint`, { method: 'POST', body: 'x' })
    expect([reply.status, await reply.text()]).toEqual([500, 'internal error\n'])
    expect(logged).toEqual([{ msg: 'Could not answer', reason: 'no space left on device' }])
    await other.close()
  })

  test('a stop closes the connection of the call that it answers', async () => {
    const begun = Promise.withResolvers<void>()
    const rest = Promise.withResolvers<{ status: number; body: string }>()
    const unused = async () => ({ status: 404, body: '' })
    const addCheckpoint = () => {
      begun.resolve()
      return rest.promise
    }
    const log = { info() {}, warn() {}, error() {} }
    const witness = { addCheckpoint, getCheckpoint: unused, getStatement: unused }
    const other = await serveWitness({ witness, count: () => undefined, log }, { host: '127.0.0.1', port: 0 })
    const reply = fetch(`${other.address}/add-checkpoint`, { method: 'POST', body: 'x' })
    await begun.promise
    const closed = other.close()
    rest.resolve({ status: 200, body: 'cosigned\n' })
    const { status, headers } = await reply
    expect([status, headers.get('connection')]).toEqual([200, 'close'])
    await closed
  })

  test('metrics have a separate port', async () => {
    const metrics = await serveMetrics(() => 'text\n', 0)
    expect(await (await fetch(`${metrics.address}/metrics`)).text()).toBe('text\n')
    expect((await fetch(`${metrics.address}/add-checkpoint`, { method: 'POST' })).status).toBe(404)
    await metrics.close()
  })
})

test('the example in docs/run/log-and-witness.md starts', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/run/log-and-witness.md'), 'utf8')
  const folder = await mkdtemp(join(tmpdir(), 'countersign-witness-example-'))
  const move = (text: string) => text.replaceAll('/var/lib/', `${folder}/`).replaceAll('/etc/witness/', `${folder}/`)
  try {
    const [, keyArguments = ''] = /^npm run witness:key -- (.*)$/m.exec(page) ?? []
    const newKey = join(import.meta.dirname, 'newKey.ts')
    await promisify(execFile)(process.execPath, ['-C', 'source', newKey, ...move(keyArguments).split(' ')])
    const [logs = ''] = /^ *logs\/v0\n(?: *\S.*\n|\n)*? *vkey .*\n/m.exec(page) ?? []
    await writeFile(join(folder, 'logs'), logs)
    const [, settings = ''] = /^(WITNESS_DIR=.*) npm run witness$/m.exec(page) ?? []
    const env = { ...parseEnv(move(settings).replaceAll(' ', '\n')), PORT: '0' } as Record<string, string>
    const witness = startService({ name: 'witness', main: join(import.meta.dirname, 'main.ts'), env })
    try {
      expect(await witness.started).toMatchObject({ msg: 'Started the witness', logs: 1 })
    } finally {
      await witness.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
