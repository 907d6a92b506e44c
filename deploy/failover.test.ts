import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { findFreePorts, findProgram } from '@countersign/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Haproxy, replaceAll, startHaproxy } from '../trials/cluster/haproxy.ts'
import { read } from './test/manifests.ts'

const program = findProgram('haproxy')
if (program === undefined) console.log('HAProxy not found: skipping the configuration for PostgreSQL')

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

/** Sends its name on every connection. A second port reports whether it is primary. */
async function startNamed(name: string) {
  const server = createServer((socket) => socket.on('error', () => {}).end(name))
  const state = { isPrimary: true, checks: 0 }
  const role = createHttpServer((_, response) => {
    state.checks += 1
    response.writeHead(state.isPrimary ? 200 : 503).end()
  })
  const [port, rolePort] = [await listen(server), await listen(role)]
  const stop = () => {
    role.closeAllConnections()
    server.close()
    role.close()
  }
  return { state, port, rolePort, stop }
}

test('connections stay open during a migration of several hours', () => {
  const text = read('deploy/failover/haproxy.cfg')
  for (const side of ['client', 'server']) {
    const [, hours] = new RegExp(`^  timeout ${side} (\\d+)h$`, 'm').exec(text) ?? []
    expect(Number(hours)).toBeGreaterThanOrEqual(12)
  }
})

describe.runIf(program !== undefined)('one address for two PostgreSQL servers', () => {
  let [folder, port] = ['', 0]
  let a: Awaited<ReturnType<typeof startNamed>>
  let b: Awaited<ReturnType<typeof startNamed>>
  let proxy: Haproxy
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-failover-'))
    ;[port = 0] = await findFreePorts(1)
    ;[a, b] = [await startNamed('a'), await startNamed('b')]
    proxy = await startHaproxy({
      program: program ?? '',
      text: replaceAll(read('deploy/failover/haproxy.cfg'), {
        'bind 127.0.0.1:5432': `bind 127.0.0.1:${port}`,
        '10.0.0.1:5432 port 8008': `127.0.0.1:${a.port} port ${a.rolePort}`,
        '10.0.0.2:5432 port 8008': `127.0.0.1:${b.port} port ${b.rolePort}`,
      }),
      file: join(folder, 'haproxy.cfg'),
      port,
    })
  })
  afterAll(async () => {
    await proxy?.stop()
    a?.stop()
    b?.stop()
    await rm(folder, { recursive: true })
  })

  const readName = () => text(connect(port, '127.0.0.1')).catch(() => '')
  async function readOften(): Promise<string> {
    let answers = ''
    for (let count = 0; count < 8; count++) answers += await readName()
    return answers
  }
  /** Waits for two more role checks, so that HAProxy has applied the first one. */
  async function waitForChecks({ state }: typeof a) {
    const from = state.checks
    await expect.poll(() => state.checks).toBeGreaterThan(from + 2)
  }

  test('uses only one server if both claim to be primary', async () => {
    await waitForChecks(a)
    await waitForChecks(b)
    expect(await readOften()).toBe('aaaaaaaa')
  })

  test('switches to the other server, and stays there if the old primary claims its role again', async () => {
    a.state.isPrimary = false
    await expect.poll(readName).toBe('b')
    a.state.isPrimary = true
    await waitForChecks(a)
    expect(await readOften()).toBe('bbbbbbbb')
    b.state.isPrimary = false
    await expect.poll(readName).toBe('a')
  })
})
