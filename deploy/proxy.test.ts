import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { findFreePorts, findProgram } from '@countersign/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAuthority } from '../trials/cluster/authority.ts'
import type { Haproxy } from '../trials/cluster/haproxy.ts'
import { startDeployedHaproxy } from '../trials/cluster/startDeployedHaproxy.ts'

const program = findProgram('haproxy')
if (program === undefined) console.log('HAProxy not found: skipping the proxy tests')

describe.runIf(program !== undefined)('when a coordinator dies during a call', () => {
  let [folder, port, pem] = ['', 0, '']
  let proxy: Haproxy
  let servers: Server[]
  let client: ClientHttp2Session
  /** Body lengths that the coordinators received. The first one to receive a call dies. */
  const bodies: number[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-proxy-'))
    const authority = await createAuthority(folder)
    pem = authority.pem
    servers = Array.from({ length: 3 }, () =>
      createServer(async (request, response) => {
        const { length } = await buffer(request)
        if (request.url === '/health/ready') return void response.end()
        if (bodies.push(length) === 1) request.socket.destroy()
        else response.end('answer')
      }).listen(0, '127.0.0.1'),
    )
    await Promise.all(servers.map((server) => once(server, 'listening')))
    ;[port = 0] = await findFreePorts(1)
    proxy = await startDeployedHaproxy({
      program: program ?? '',
      folder,
      authority,
      port,
      coordinatorPorts: servers.map((server) => (server.address() as AddressInfo).port),
      ipfsPort: 1,
    })
  })
  afterAll(async () => {
    await proxy?.stop()
    for (const server of servers ?? []) {
      server.closeAllConnections()
      server.close()
    }
    await rm(folder, { recursive: true })
  })
  beforeEach(async () => {
    bodies.length = 0
    client = connect(`https://localhost:${port}`, { ca: pem })
    await once(client, 'connect')
  })
  afterEach(() => client.destroy())

  /** Sends the body after the headers, like browsers. */
  async function post(path: string, length = 1_000) {
    const call = client.request({ ':method': 'POST', ':path': path, 'content-length': length })
    const answer = once(call, 'response')
    answer.catch(() => {})
    // The proxy has received the headers once it answers this ping.
    await new Promise<void>((resolve, reject) => client.ping((error) => (error ? reject(error) : resolve())))
    call.end(Buffer.alloc(length))
    const [headers] = await answer
    return { status: headers[':status'], body: await text(call) }
  }

  test.each(['/sign/digest', '/sign/authorization', '/vaults', '/auth/google/form'])(
    '%s is repeated at another coordinator',
    async (path) => {
      expect(await post(path)).toEqual({ status: 200, body: 'answer' })
      expect(bodies).toEqual([1_000, 1_000])
    },
  )

  test.each(['/sign/message', '/sign/typed-data', '/sign/another-kind', '/auth/google/callback'])(
    '%s is not repeated, by the proxy or the client',
    async (path) => {
      expect(await post(path)).toMatchObject({ status: 502 })
      expect(bodies).toEqual([1_000])
      expect(await post(path)).toEqual({ status: 200, body: 'answer' })
    },
  )

  test('a call that exceeds the buffer is left to the client to repeat', async () => {
    await expect(post('/sign/digest', 65_536)).rejects.toThrow('NGHTTP2_REFUSED_STREAM')
    expect(bodies).toEqual([65_536])
  })

  test('while the proxy stops, each open connection gets one more answer', async () => {
    // No coordinator dies in this test.
    bodies.push(0)
    const paths = ['/sign/digest', '/sign/message', '/auth/google/callback']
    const agents = paths.map(() => new Agent({ keepAlive: true, maxSockets: 1, ca: pem }))
    const get = async (path: string, agent: Agent | undefined) => {
      const call = request(`https://localhost:${port}${path}`, { agent, method: 'POST' })
      call.end()
      const [answer] = await once(call, 'response')
      return [answer.statusCode, await text(answer)]
    }
    for (const [index, path] of paths.entries()) await get(path, agents[index])
    await proxy.drain()
    for (const [index, path] of paths.entries()) expect(await get(path, agents[index])).toEqual([200, 'answer'])
    for (const agent of agents) agent.destroy()
  })
})
