import { createHash, randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import {
  type AttestResponse,
  enclavePaths,
  fromHex,
  type OpenSessionResponse,
  type SignItemsResponse,
  toHex,
} from '@countersign/protocol'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../test/clientKey.ts'
import { callEnclave, createTestCoordinator } from '../test/coordinator.ts'
import { type EnclaveProcess, spawnEnclave, startEnclave } from '../test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../test/issuer.ts'
import { signOne, toItem } from '../test/items.ts'
import { custodians, measurement } from '../test/peers.ts'
import { permit } from '../test/typedData.ts'
import { createWitness, satelliteKey } from '../test/witness.ts'

let folder = ''
let issuer: TestIssuer
/** Sessions and signatures of a first enclave, which has stopped. */
let session: OpenSessionResponse
let items: ReturnType<typeof toItem>[]
let signatures: unknown[]
/** Two enclaves with its root secret, started later and shared by the tests. */
let enclave: EnclaveProcess
let other: EnclaveProcess
/** Enclaves that one test has started. */
const running: EnclaveProcess[] = []
const coordinator = createTestCoordinator()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'enclave-'))
  issuer = await startTestIssuer()
  const first = await start()
  const users = Array.from({ length: 8 }, (_, index) => login(first, `user ${index}`))
  const sessions = await Promise.all([login(first, 'alice'), ...users])
  session = sessions[0] as OpenSessionResponse
  items = Array.from({ length: 64 }, (_, index) => toItem(sessions[index % 9] as OpenSessionResponse, index))
  signatures = await Promise.all(items.map((item) => sign(first, item)))
  await first.kill('SIGTERM')
  ;[enclave, other] = await Promise.all([start(), start()])
  running.length = 0
})
afterEach(async () => {
  for (const { kill } of running.splice(0)) await kill('SIGKILL')
})
afterAll(async () => {
  for (const { kill } of [enclave, other]) await kill('SIGKILL')
  await issuer.close()
  await rm(folder, { recursive: true })
})

async function start(changes: Record<string, string> = {}, startedMessage?: string) {
  const env = {
    ROOT_SECRET: `file:${folder}/root-secret`,
    OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
    MOCK_QUOTE_LATENCY_MS: '39',
    ...changes,
  }
  const enclave = await startEnclave(env, startedMessage)
  running.push(enclave)
  return enclave
}

async function login({ url }: EnclaveProcess, subject: string, clientKey?: string): Promise<OpenSessionResponse> {
  const token = await issuer.login(subject, clientKey)
  const { status, body } = await callEnclave(url, coordinator, enclavePaths.openSession, token)
  expect(status).toBe(200)
  return body
}

function toMessage({ sid, grant, keyId }: OpenSessionResponse, message: string) {
  return { kind: 'message', sid, grant, keyId, content: { message }, witness: createWitness() }
}

function toTypedData({ sid, grant, keyId }: OpenSessionResponse, content: object) {
  return { kind: 'typed-data', sid, grant, keyId, content, witness: createWitness() }
}

const sign = (enclave: EnclaveProcess, item: object) => signOne(enclave, coordinator, item)

describe('an enclave process', () => {
  test('the same user has the same address and signature after a restart and on a second enclave with the root secret', async () => {
    const [item, signature] = [items[0] as object, signatures[0]]
    expect(signature).toMatch(/^0x[0-9a-f]{130}$/)
    // The grant depends on the root secret, not on the process, so both accept it.
    expect(await sign(enclave, item)).toBe(signature)
    expect(await sign(other, item)).toBe(signature)
    const again = await login(enclave, 'alice')
    expect(again).toMatchObject({ address: session.address, keyId: session.keyId })
    expect(again.sid).not.toBe(session.sid)
    expect((await login(other, 'bob')).address).not.toBe(session.address)
  })

  test('an ID token opens only one session', async () => {
    const token = await issuer.login('alice')
    const replies = await Promise.all(
      [1, 2, 3].map(() => callEnclave(enclave.url, coordinator, enclavePaths.openSession, token)),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 403, 403])
  })

  test('after a kill with 64 pending calls, the same requests give the same signatures', async () => {
    const slow = await start({ MOCK_QUOTE_LATENCY_MS: '60000' })
    const waiting = items.map((item) => sign(slow, item).catch(() => 'cut off'))
    await untilListening(slow)
    await slow.kill('SIGKILL')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['cut off']))
    const again = await start()
    expect(await Promise.all(items.map((item) => sign(again, item)))).toEqual(signatures)
  })

  test('after a kill with pending messages, none was released, and each is signed again with another commitment', async () => {
    const slow = await start({ MOCK_QUOTE_LATENCY_MS: '60000' })
    const again = Array.from({ length: 8 }, (_, index) => toMessage(session, `0x0${index}`))
    const waiting = again.map((item) => sign(slow, item).catch(() => 'cut off'))
    await untilListening(slow)
    await slow.kill('SIGKILL')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['cut off']))
    // A start also logs its root secret's commitment.
    const said = slow.output.filter((line) => !line.includes('Started the enclave'))
    expect(said.join()).not.toMatch(/commitment|opening|salt/)
    const [first, second] = await Promise.all(
      [enclave, other].map((one) => Promise.all(again.map((item) => sign(one, item)))),
    )
    expect(first).toEqual(again.map(() => ({ commitment: expect.stringMatching(/^[0-9a-f]{64}$/) })))
    expect(new Set([...(first ?? []), ...(second ?? [])].map((subject) => JSON.stringify(subject))).size).toBe(16)
  })

  test('a stamp gives the same signature after a lost answer, after a restart and at a second enclave', async () => {
    const browser = createClient()
    const { address, ...bound } = await login(enclave, 'alice', browser.clientKey)
    const item = toItem({ address, ...bound }, 100)
    const digest = fromHex(item.digest.slice(2))
    const stamp = browser.stamp({ address, vault: null, kind: 'transaction', digest, issuedMs: Date.now() })
    const trySign = (one: EnclaveProcess, changes: object = { stamp }) =>
      sign(one, { ...item, witness: createWitness(), ...changes })
    const slow = await start({ MOCK_QUOTE_LATENCY_MS: '60000' })
    const lost = trySign(slow).catch(() => 'cut off')
    await untilListening(slow)
    await slow.kill('SIGKILL')
    expect(await lost).toBe('cut off')
    const signature = await trySign(enclave)
    expect(signature).toMatch(/^0x[0-9a-f]{130}$/)
    for (const one of [enclave, other, await start()]) expect(await trySign(one)).toBe(signature)
    expect(await trySign(other, {})).toBe('stamp_missing')
  })

  test('SIGTERM: finishes the current batch and exits with 0', async () => {
    const enclave = await start({ MOCK_QUOTE_LATENCY_MS: '400' })
    const session = await login(enclave, 'alice')
    const pending = sign(enclave, toItem(session))
    await untilListening(enclave)
    expect(await enclave.kill('SIGTERM')).toBe(0)
    expect(await pending).toMatch(/^0x[0-9a-f]{130}$/)
  })

  test('logs no secret, token or key', async () => {
    const { url, output } = other
    const token = await issuer.login('someone@example.com')
    const { body } = await callEnclave(url, coordinator, enclavePaths.openSession, token)
    const session = body as OpenSessionResponse
    await sign(other, toItem(session))
    await sign(other, toItem({ ...session, grant: 'x.y' }))
    await callEnclave(url, coordinator, enclavePaths.openSession, { ...token, idToken: `${token.idToken}x` })
    const items = [toMessage(session, '0x7365637265742074657874'), toTypedData(session, permit)]
    const refused = [
      toMessage(session, 'secret text'),
      toTypedData(session, { ...permit, message: { secret: 'text' } }),
    ]
    const call = { items: [...items, ...refused, { ...items[0], extra: 'secret text' }] }
    const answer = (await callEnclave(url, coordinator, enclavePaths.sign, call)).body as SignItemsResponse
    const openings = answer.results.map((result) => ('opening' in result ? result.opening : undefined))
    expect(openings.map((opening) => opening !== undefined)).toEqual([true, true, false, false, false])
    const ofOpenings = [...JSON.stringify(openings).matchAll(/[0-9a-f]{64,130}/g)].map(([hex]) => hex)
    // Digest, signature and two salts of each, and the permit's value.
    expect(ofOpenings).toHaveLength(2 * 4 + 1)
    // The complete logs of this test and earlier ones.
    await other.kill('SIGTERM')
    const rootSecret = (await readFile(join(folder, 'root-secret'), 'utf8')).trim()
    const log = output.join('\n')
    for (const secret of [
      session.sid,
      session.grant,
      token.idToken,
      token.loginSecret,
      rootSecret,
      'someone@example.com',
      ...['7365637265742074657874', 'secret text', 'Permit'],
      ...ofOpenings,
    ]) {
      expect(log).not.toContain(secret)
    }
    expect(log).toContain('Refused a call')
  })

  /** Calls are handled in order, so when this signed call is rejected, the earlier calls are pending. */
  async function untilListening({ url }: EnclaveProcess) {
    expect((await callEnclave(url, coordinator, enclavePaths.sign, {})).status).toBe(400)
  }
})

describe('the time', () => {
  const YEAR_MS = 31_536_000_000

  test('a host that starts it with the clock set back by a year cannot reuse ID tokens or grants', async () => {
    // For the host, the rest of the world is a year ahead.
    issuer.aheadMs = YEAR_MS
    try {
      const late = await start()
      // The coordinator uses the host's clock or the correct one.
      for (const timeMs of [Date.now(), Date.now() + YEAR_MS]) {
        const call = (path: string, request: unknown) => callEnclave(late.url, coordinator, path, request, timeMs)
        const opened = await call(enclavePaths.openSession, await issuer.login('alice'))
        expect(opened.status).toBeGreaterThanOrEqual(400)
        expect(opened.body).not.toHaveProperty('grant')
        const item = { ...items[0], witness: createWitness(timeMs) }
        const { body } = await call(enclavePaths.sign, { items: [item] })
        expect(JSON.stringify(body)).not.toContain('statement')
      }
      const item = { ...items[0], witness: createWitness(Date.now() + YEAR_MS) }
      const request = { items: [item] }
      const path = enclavePaths.sign
      const { body } = await callEnclave(late.url, coordinator, path, request, Date.now() + YEAR_MS)
      expect(body).toEqual({ batches: [], results: [{ error: 'session_expired' }] })
      expect(late.output.join()).toContain('The clock is behind the issuers’')
    } finally {
      issuer.aheadMs = 0
    }
  })

  test('a host that stops the clock cannot extend a session', async () => {
    // Simulates a minute of monotonic time with a stopped clock.
    const stopClock = `process.once('SIGUSR2', () => {
      const [now, monotonic] = [Date.now(), performance.now.bind(performance)]
      Date.now = () => now
      performance.now = () => monotonic() + 62_000
      console.log('{"msg":"stopped the clock"}')
    })`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(stopClock)}`
    const stopped = await start({ SESSION_TTL_S: '60', NODE_OPTIONS })
    const item = toItem(await login(stopped, 'alice'))
    const signAt = async (timeMs: number) => {
      const request = { items: [{ ...item, witness: createWitness(timeMs) }] }
      return (await callEnclave(stopped.url, coordinator, enclavePaths.sign, request, timeMs)).body
    }
    expect(await signAt(Date.now())).toMatchObject({ results: [{ statement: {} }] })
    stopped.child.kill('SIGUSR2')
    await expect.poll(() => stopped.output.join()).toContain('stopped the clock')
    expect(await signAt(Date.now())).not.toHaveProperty('results.0.statement')
    expect(await signAt(Date.now() + 62_000)).toEqual({ batches: [], results: [{ error: 'session_expired' }] })
  })

  test('opens and signs nothing until the issuers have given the time, but answers attestations', async () => {
    issuer.isDown = true
    try {
      const young = await start({}, 'Waiting for the time')
      const call = (path: string, request: unknown) => callEnclave(young.url, coordinator, path, request)
      const unknown = { status: 503, body: { error: { code: 'time_unknown' } } }
      expect(await call(enclavePaths.openSession, await issuer.login('alice'))).toMatchObject(unknown)
      expect(await call(enclavePaths.sign, { items: [items[0]] })).toMatchObject(unknown)
      expect(await call(enclavePaths.attest, { nonce: '11'.repeat(32) })).toMatchObject({ status: 200 })
      issuer.isDown = false
      await expect.poll(() => young.output.join(), { timeout: 30_000 }).toContain('Started the enclave')
      expect(await sign(young, { ...items[0], witness: createWitness() })).toBe(signatures[0])
    } finally {
      issuer.isDown = false
    }
  })

  test('accepts a sign-in right after the start', async () => {
    const young = await start()
    await login(young, 'alice')
  })
})

test('continues if its log output is closed', async () => {
  const unread = await start()
  unread.child.stdout?.destroy()
  for (const path of ['/a', '/b', '/c']) expect((await fetch(unread.url + path)).status).toBe(404)
  await login(unread, 'alice')
  expect(await unread.kill('SIGTERM')).toBe(0)
})

describe('other listeners', () => {
  test('a Unix socket that only its owner may use', async () => {
    const path = join(folder, 'enclave.sock')
    const enclave = await start({ LISTEN: `unix:${path}` })
    expect(enclave.url).toBe(`unix:${path}`)
    const response = await new Promise<number | undefined>((resolve, reject) => {
      httpRequest({ socketPath: path, path: '/health' }, (message) => resolve(message.resume().statusCode))
        .on('error', reject)
        .end()
    })
    expect(response).toBe(200)
  })

  test('attested TLS: the quote is over the key of the connection’s certificate', async () => {
    const enclave = await start({ LISTEN: 'https' })
    const body = Buffer.from(JSON.stringify({ nonce: randomBytes(32).toString('hex') }))
    const headers = coordinator.sign({ path: enclavePaths.attest, body, timeMs: Date.now() })
    const url = new URL(enclavePaths.attest, enclave.url)
    const outgoing = httpsRequest(url, { method: 'POST', headers, rejectUnauthorized: false, agent: false })
    outgoing.end(body)
    const [response] = await once(outgoing, 'response')
    const certificate = new X509Certificate((response.socket as TLSSocket).getPeerCertificate().raw)
    let text = ''
    for await (const chunk of response) text += chunk
    const answer = JSON.parse(text) as AttestResponse
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' })
    expect(answer.tlsKeyHash).toBe(createHash('sha256').update(spki).digest('hex'))
    expect((response.socket as TLSSocket).getProtocol()).toBe('TLSv1.3')
  })
})

describe('a process that cannot serve exits', () => {
  test('if its port is in use', async () => {
    const { child, output } = spawnEnclave({
      MOCK_ATTESTATION: 'true',
      QUOTE_SOURCE: 'mock',
      ROOT_SECRET: `file:${folder}/root-secret`,
      OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
      ENTROPY_PUBLIC_KEY: satelliteKey,
      PORT: new URL(enclave.url).port,
    })
    const [code] = await once(child, 'close')
    expect(code).toBe(1)
    expect(output.join()).toContain('EADDRINUSE')
  })

  test('if its key worker has died, without answering', async () => {
    // A message that its code never sends and that ends the thread. `terminate` during a call of libsecp256k1 would end the whole process.
    const endWorker = 'process.on("worker",(worker)=>process.once("SIGUSR2",()=>worker.postMessage(null)))'
    const enclave = await start({
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(endWorker)}`,
      MOCK_QUOTE_LATENCY_MS: '60000',
    })
    const session = await login(enclave, 'alice')
    const waiting = sign(enclave, toItem(session)).catch(() => 'cut off')
    await fetch(`${enclave.url}/health`)
    expect(await enclave.kill('SIGUSR2')).toBe(1)
    expect(await waiting).toBe('cut off')
    expect(enclave.output.join()).toContain('the key worker has ended')
    await expect(fetch(`${enclave.url}/health`)).rejects.toThrow()
  })

  /** An enclave that would join a missing enclave. */
  async function spawnJoiner() {
    const policyPath = join(folder, 'root-secret-policy.json')
    const keys = custodians.map(({ publicKey }) => toHex(publicKey))
    await writeFile(policyPath, JSON.stringify({ measurements: [measurement], custodians: { threshold: 2, keys } }))
    const { child, output } = spawnEnclave({
      MOCK_ATTESTATION: 'true',
      QUOTE_SOURCE: 'mock',
      ROOT_SECRET: 'attested',
      ROOT_SECRET_POLICY_FILE: policyPath,
      // The discard port, on which nothing listens.
      ROOT_SECRET_FROM: 'join:http://127.0.0.1:9',
      OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
      ENTROPY_PUBLIC_KEY: satelliteKey,
      PORT: '0',
    })
    return { child, output, ended: once(child, 'close') }
  }
  const ending = ['Stopping the enclave', 'Stopped the enclave']
  const messagesOf = (output: string[]) => output.map((line) => JSON.parse(line).msg)

  test('immediately on a signal while it waits for an enclave to join', async () => {
    const { child, output, ended } = await spawnJoiner()
    await expect.poll(() => output.join(), { timeout: 30_000 }).toContain('Got no root secret from an enclave')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(messagesOf(output).slice(-2)).toEqual(ending)
    expect(output.join()).not.toContain('Could not')
  })

  test('on a signal before it knows the time, and without requesting the root secret', async () => {
    issuer.isDown = true
    try {
      const { child, output, ended } = await spawnJoiner()
      const countTries = () => messagesOf(output).filter((msg) => msg === 'Could not learn the time').length
      await expect.poll(countTries).toBeGreaterThanOrEqual(3)
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
      expect(messagesOf(output).slice(-2)).toEqual(ending)
      expect(output.join()).not.toContain('root secret')
    } finally {
      issuer.isDown = false
    }
  })

  test('a stop does not wait for a caller that keeps its connection busy', async () => {
    const enclave = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = () =>
      new Promise<string | undefined>((resolve, reject) => {
        httpRequest(`${enclave.url}/health`, { agent }, (message) => {
          message.resume().on('end', () => resolve(message.headers.connection))
        })
          .on('error', reject)
          .end()
      })
    expect(await ask()).toBe('keep-alive')
    expect(await enclave.kill('SIGTERM')).toBe(0)
    agent.destroy()
  })
})

describe('a failed start lists every fault', () => {
  const refuse = async (env: Record<string, string>) => {
    const { child, output } = spawnEnclave(env)
    const [code] = await once(child, 'close')
    return { code, faults: output.map((line) => JSON.parse(line).fault as string | undefined).filter(Boolean) }
  }

  test('an empty environment', async () => {
    const { code, faults } = await refuse({})
    expect(code).toBe(1)
    expect(faults).toEqual(
      expect.arrayContaining([
        expect.stringContaining('ROOT_SECRET'),
        expect.stringContaining('QUOTE_SOURCE'),
        expect.stringContaining('OIDC_ISSUERS'),
      ]),
    )
  })

  test('mock, a secret in a file, plain HTTP, any caller and an http issuer in production', async () => {
    const { code, faults } = await refuse({
      NODE_ENV: 'production',
      MOCK_ATTESTATION: 'true',
      QUOTE_SOURCE: 'mock',
      ROOT_SECRET: `file:${folder}/production-secret`,
      OIDC_ISSUERS: `${issuer.url}=a`,
    })
    expect(code).toBe(1)
    for (const key of ['QUOTE_SOURCE', 'ROOT_SECRET', 'LISTEN', 'CALLER_POLICY_FILE', 'OIDC_ISSUERS']) {
      expect(faults.some((fault) => fault?.startsWith(key))).toBe(true)
    }
    await expect(readFile(`${folder}/production-secret`)).rejects.toThrow('ENOENT')
  })
})
