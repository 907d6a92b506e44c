import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpsRequest } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createVerifier, vendorRoots } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import { createSimulatedReportSource } from '@countersign/evidence'
import {
  createEnclaveSettings,
  hashEnclaveConfig,
  hashUnsignedTransaction,
  type OpenSessionResponse,
  type SignItem,
  toEnclaveVersion,
  toHex,
} from '@countersign/protocol'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type EnclaveProcess, startEnclave } from '../../../enclave/test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../../../enclave/test/issuer.ts'
import { createWitness, satelliteKey } from '../../../enclave/test/witness.ts'
import { createManualTime } from '../collateral/manualTime.fake.ts'
import { createPlatformReader } from '../collateral/platformReader.ts'
import { createSimulatedCollateralStore } from '../collateral/simulatedCollateralStore.ts'
import { CoordinatorError } from '../errors.ts'
import { createSelfReport } from '../health/selfReport.ts'
import { createSnpCertificates } from '../health/snpCertificates.ts'
import type { KeyEnclave } from '../ports.ts'
import {
  type FakeEnclave,
  fakeConfig,
  fakeSession,
  fakeSettings,
  fakeSigned,
  startFakeEnclave,
  startProxy,
} from './httpEnclave.fake.ts'
import { createHttpEnclave, type HttpEnclaveDeps } from './httpEnclave.ts'

const clock = { now: () => Date.now() }
const roots = simulatedRoots()
const collateral = createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock })
const verifier = createVerifier({ roots })
const simulator = createSimulator({ at: new Date() })

/** What a test started, ended after it. */
const clean: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of clean.splice(0).reverse()) await end()
})

function createCaller() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex'),
    sign: (message: Uint8Array) => sign(null, message, privateKey),
  }
}

/** An adapter for these addresses, with its log. */
function setUp(urls: readonly string[], changes: Partial<HttpEnclaveDeps> = {}) {
  const lines: ({ msg: string } & Record<string, unknown>)[] = []
  const write = (line: { msg: string }) => void lines.push(line)
  const enclave = createHttpEnclave({
    urls,
    caller: createCaller(),
    verifier,
    collateral,
    readPlatform: createPlatformReader(),
    policy: {},
    isMock: true,
    clock,
    random: (length) => new Uint8Array(randomBytes(length)),
    log: { info: write, warn: write },
    ...changes,
  })
  clean.push(() => enclave.stop())
  const attestations = () => lines.filter(({ msg }) => msg === 'Attested an enclave').length
  return { enclave, lines, attestations }
}

const withCode = (code: string) => expect.objectContaining({ name: 'CoordinatorError', code })
const unavailable = withCode('enclave_unavailable')

function toItem({ sid, grant, keyId }: OpenSessionResponse, nonce = 0): SignItem {
  const txMetadata = {
    chainId: 1,
    nonce,
    to: `0x${'11'.repeat(20)}`,
    value: '1',
    data: '0x',
    gas: '21000',
    maxFeePerGas: '2',
    maxPriorityFeePerGas: '1',
  } as const
  const digest = `0x${toHex(hashUnsignedTransaction(txMetadata))}` as const
  return { sid, grant, keyId, digest, txMetadata, witness: createWitness() }
}

async function signOne(enclave: KeyEnclave, session: OpenSessionResponse) {
  const { results } = await enclave.signTransactions([toItem(session)])
  const [result] = results
  return result !== undefined && 'statement' in result ? result.statement.signature : result?.error
}

describe('a real enclave', () => {
  let folder = ''
  let issuer: TestIssuer
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'http-enclave-'))
    issuer = await startTestIssuer()
  })
  afterAll(async () => {
    await issuer.close()
    await rm(folder, { recursive: true })
  })

  async function start(changes: Record<string, string> = {}): Promise<EnclaveProcess> {
    const process = await startEnclave({
      ROOT_SECRET: `file:${folder}/root-secret`,
      OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
      MOCK_QUOTE_LATENCY_MS: '1',
      ...changes,
    })
    clean.push(() => process.kill('SIGKILL'))
    return process
  }

  const listens = {
    http: () => ({}),
    unix: () => ({ LISTEN: `unix:${folder}/socket` }),
    https: () => ({ LISTEN: 'https' }),
  }

  test.each(['http', 'unix', 'https'] as const)('over %s: sign in, sign, started anew, sign the same', async (kind) => {
    const first = await start(listens[kind]())
    const { enclave, attestations } = setUp([first.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    expect(session.address).toMatch(/^0x[0-9a-f]{40}$/)
    const answer = await enclave.signTransactions([toItem(session)])
    expect(answer.config.issuers).toEqual([expect.objectContaining({ issuer: issuer.url })])
    const signature = await signOne(enclave, session)
    expect(attestations()).toBe(1)
    await first.kill('SIGKILL')
    await expect(signOne(enclave, session)).rejects.toEqual(unavailable)
    // At the same address: another boot, and by https another key.
    await start({ ...listens[kind](), ...(kind === 'unix' ? {} : { PORT: new URL(first.url).port }) })
    expect(await signOne(enclave, session)).toBe(signature)
    expect(attestations()).toBe(2)
  })

  test.each(['http', 'https'] as const)(
    'over %s, started anew between two calls, unnoticed: attested anew',
    async (kind) => {
      const [first, second] = await Promise.all([start(listens[kind]()), start(listens[kind]())])
      let target = first.url
      const proxy = await startProxy(() => target)
      clean.push(() => proxy.close())
      const { enclave, attestations } = setUp([`${kind}://127.0.0.1:${proxy.port}`])
      const session = await enclave.openSession(await issuer.login('alice'))
      const signature = await signOne(enclave, session)
      target = second.url
      proxy.cut()
      expect(await signOne(enclave, session)).toBe(signature)
      expect(attestations()).toBe(2)
    },
  )

  test('two enclaves: one is killed, the other goes on, and stays the one in use', async () => {
    const [first, second] = await Promise.all([start(), start({ LISTEN: 'https' })])
    const { enclave, lines } = setUp([first.url, second.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    const signature = await signOne(enclave, session)
    await first.kill('SIGKILL')
    const signatures = await Promise.all(Array.from({ length: 10 }, () => signOne(enclave, session)))
    expect(new Set(signatures)).toEqual(new Set([signature]))
    const before = lines.length
    expect(await signOne(enclave, session)).toBe(signature)
    expect(lines.length).toBe(before)
    await second.kill('SIGKILL')
    await expect(signOne(enclave, session)).rejects.toEqual(unavailable)
  })

  test('calls under way when an enclave is killed are answered by the other', async () => {
    const [first, second] = await Promise.all([start({ MOCK_QUOTE_LATENCY_MS: '700' }), start()])
    const { enclave } = setUp([first.url, second.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    const pending = Promise.all(Array.from({ length: 8 }, () => signOne(enclave, session)))
    // A health check travels behind the calls sent before it.
    await fetch(`${first.url}/health`)
    await first.kill('SIGKILL')
    expect(new Set(await pending).size).toBe(1)
  })

  test('an enclave that is frozen: the other answers meanwhile, and stays the one in use', async () => {
    const [first, second] = await Promise.all([start({ LISTEN: 'https' }), start({ LISTEN: 'https' })])
    const { enclave, lines } = setUp([first.url, second.url], { patienceMs: 50, timeoutMs: 3_600_000 })
    const session = await enclave.openSession(await issuer.login('alice'))
    const signature = await signOne(enclave, session)
    first.child.kill('SIGSTOP')
    // With its calls unanswered it would hold up the end.
    clean.push(async () => first.child.kill('SIGCONT'))
    const signatures = await Promise.all(Array.from({ length: 10 }, () => signOne(enclave, session)))
    expect(new Set(signatures)).toEqual(new Set([signature]))
    const isAboutFirst = ({ msg, enclave: at }: Record<string, unknown>) =>
      msg === 'An enclave keeps silent' && at === first.url
    expect(lines.some(isAboutFirst)).toBe(true)
    const before = lines.length
    expect(await signOne(enclave, session)).toBe(signature)
    expect(lines.slice(before).some(isAboutFirst)).toBe(false)
  })

  test('an ID token that the enclaves refuse is the user’s failure; one that was used is not shown to the next', async () => {
    const real = await start()
    const other = await startFakeEnclave()
    clean.push(() => other.close())
    const { enclave } = setUp([real.url, other.url])
    const token = await issuer.login('alice')
    const tampered = { ...token, loginSecret: '00'.repeat(32) }
    other.handlers['/open-session'] = () => ({
      status: 403,
      body: { error: { code: 'id_token_invalid', message: '' } },
    })
    await expect(enclave.openSession(tampered)).rejects.toEqual(withCode('oauth_exchange_failed'))
    const shown = other.paths.length
    expect(shown).toBeGreaterThan(0)
    await enclave.openSession(token)
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('oauth_exchange_failed'))
    expect(other.paths.length).toBe(shown)
  })

  test('an ID token that an enclave has just started too late for is taken by another', async () => {
    const [young, real] = [await startFakeEnclave(), await start()]
    clean.push(() => young.close())
    young.handlers['/open-session'] = () => ({
      status: 403,
      body: { error: { code: 'id_token_invalid', message: '' } },
    })
    const { enclave } = setUp([young.url, real.url])
    expect(await enclave.openSession(await issuer.login('alice'))).toMatchObject({ grant: expect.any(String) })
  })

  test('an enclave that does not know the time yet: another is asked, to open and to sign', async () => {
    const [young, real] = [await startFakeEnclave(), await start()]
    clean.push(() => young.close())
    const unknown = () => ({ status: 503, body: { error: { code: 'time_unknown', message: '' } } })
    young.handlers['/open-session'] = unknown
    young.handlers['/sign-transactions'] = unknown
    const { enclave, lines } = setUp([young.url, real.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    const again = setUp([young.url, real.url])
    expect(await signOne(again.enclave, session)).toMatch(/^0x[0-9a-f]{130}$/)
    for (const log of [lines, again.lines])
      expect(log).toContainEqual(expect.objectContaining({ reason: 'time_unknown' }))
    expect(await signOne(setUp([young.url]).enclave, session).catch((error) => error)).toEqual(unavailable)
  })

  test('an enclave whose memory of samples is full: another is asked', async () => {
    const [full, real] = [await startFakeEnclave(), await start()]
    clean.push(() => full.close())
    full.handlers['/sign-transactions'] = () => ({
      status: 200,
      body: { batches: [], results: [{ error: 'entropy_memory_full' }] },
    })
    const session = await setUp([real.url]).enclave.openSession(await issuer.login('alice'))
    expect(await signOne(setUp([full.url, real.url]).enclave, session)).toMatch(/^0x[0-9a-f]{130}$/)
  })

  test('an enclave that asks for attested callers gets the coordinator’s report, again after it has started anew', async () => {
    const configHash = 'c0'.repeat(32)
    const log = { info() {}, warn() {} }
    const selfReport = createSelfReport({
      reportSource: createSimulatedReportSource({ simulator, latencyMs: 0 }),
      certificates: createSnpCertificates({ verifier, log }),
      configHash,
      clock,
      log,
    })
    clean.push(() => selfReport.stop())
    await selfReport.ready()
    const { selfAttestation } = selfReport.current()
    const policyFile = join(folder, 'caller-policy.json')
    await writeFile(
      policyFile,
      JSON.stringify({ measurements: [selfAttestation.measurement], configHashes: [configHash] }),
    )
    const callerAttestation = () => {
      const { reportHex, certificates } = selfReport.current().selfAttestation
      return { report: reportHex, certificates, configHash }
    }
    const first = await start({ CALLER_POLICY_FILE: policyFile })
    const { enclave } = setUp([first.url], { caller: selfReport, callerAttestation })
    const session = await enclave.openSession(await issuer.login('alice'))
    const signature = await signOne(enclave, session)
    const stranger = setUp([first.url])
    await expect(stranger.enclave.openSession(await issuer.login('bob'))).rejects.toEqual(unavailable)
    expect(stranger.lines.at(-1)).toMatchObject({ code: 'refused', reason: 'caller_unknown' })
    await first.kill('SIGKILL')
    await start({ CALLER_POLICY_FILE: policyFile, PORT: new URL(first.url).port })
    expect(await signOne(enclave, session)).toBe(signature)
  })

  test('a man in the middle with a certificate of his own gets nothing but a nonce', async () => {
    const real = await start({ LISTEN: 'https' })
    const middle = await startFakeEnclave('https')
    clean.push(() => middle.close())
    // He passes the call on, as it was signed, and the real enclave's answer back.
    middle.handlers['/attest'] = async ({ headers, body }) => {
      const url = new URL('/attest', real.url)
      const outgoing = httpsRequest(url, { method: 'POST', headers, rejectUnauthorized: false, agent: false })
      outgoing.end(body)
      const [response] = await once(outgoing, 'response')
      let text = ''
      for await (const chunk of response) text += chunk
      return { status: response.statusCode, body: JSON.parse(text) }
    }
    const { enclave, lines } = setUp([middle.url])
    await expect(enclave.openSession(await issuer.login('alice'))).rejects.toEqual(unavailable)
    const reason = 'the quote is for another TLS key than the connection’s'
    expect(lines.at(-1)).toMatchObject({ code: 'not_attested', reason })
    expect(new Set(middle.paths)).toEqual(new Set(['/attest']))
  })

  test('a man who steps in after the attestation gets nothing at all but a nonce', async () => {
    const real = await start({ LISTEN: 'https' })
    const middle = await startFakeEnclave('https')
    clean.push(() => middle.close())
    let target = real.url
    const proxy = await startProxy(() => target)
    clean.push(() => proxy.close())
    const { enclave, lines } = setUp([`https://127.0.0.1:${proxy.port}`], {
      policy: { configHashes: [await readConfigHash(real)] },
    })
    const session = await enclave.openSession(await issuer.login('alice'))
    target = middle.url
    proxy.cut()
    await expect(signOne(enclave, session)).rejects.toEqual(unavailable)
    expect(new Set(middle.paths)).toEqual(new Set(['/attest']))
    expect(lines.at(-1)).toMatchObject({ code: 'not_attested' })
    target = real.url
    proxy.cut()
    expect(await signOne(enclave, session)).toMatch(/^0x[0-9a-f]{130}$/)
  })

  async function readConfigHash({ output }: EnclaveProcess): Promise<string> {
    return JSON.parse(output.find((line) => line.includes('configHash')) ?? '{}').configHash
  }

  test('neither tokens nor secrets are logged', async () => {
    const real = await start()
    const { enclave, lines } = setUp(['http://127.0.0.1:1', real.url])
    const token = await issuer.login('someone@example.com')
    const session = await enclave.openSession(token)
    await signOne(enclave, session)
    await enclave.openSession(token).catch(() => {})
    await real.kill('SIGKILL')
    await signOne(enclave, session).catch(() => {})
    const text = JSON.stringify(lines)
    expect(text).toContain('Could not use an enclave')
    for (const secret of [token.idToken, token.loginSecret, session.sid, session.grant])
      expect(text).not.toContain(secret)
  })
})

describe('an enclave that is not the one we trust', () => {
  async function startFake(kind: 'http' | 'https' = 'http') {
    const fake = await startFakeEnclave(kind)
    clean.push(() => fake.close())
    return fake
  }
  const token = { idToken: 'token', loginSecret: '11'.repeat(32) }
  const mrTd = '0a'.repeat(48)
  const trusted = { measurements: [{ mrTd }], configHashes: [toHex(hashEnclaveConfig(fakeConfig))] }

  test('the trusted one is accepted', async () => {
    const fake = await startFake()
    fake.quote = { mrtd: new Uint8Array(48).fill(10) }
    const { enclave } = setUp([fake.url], { policy: trusted })
    expect(await enclave.openSession(token)).toEqual(fakeSession)
  })

  test.each<[string, (fake: FakeEnclave) => void, Partial<HttpEnclaveDeps>, string]>([
    ['a quote for another nonce', (fake) => (fake.cover = { nonce: '00'.repeat(32) }), {}, 'report_data_mismatch'],
    [
      'a quote for another TLS key',
      (fake) => (fake.cover = { tlsKeyHash: '01'.repeat(32) }),
      {},
      'report_data_mismatch',
    ],
    [
      'a quote over another configuration than it shows',
      (fake) => (fake.cover = { config: { ...fakeConfig, version: '0.2.0' } }),
      {},
      'report_data_mismatch',
    ],
    [
      'a configuration that is not on the list',
      (fake) => (fake.config = { ...fakeConfig, callerPolicy: 'none' }),
      { policy: trusted },
      'configuration',
    ],
    ['code that is not on the list', () => {}, { policy: trusted }, 'measurement_not_allowed'],
    [
      'a debug TD',
      (fake) => (fake.quote = { tdAttributes: Uint8Array.of(1, 0, 0, 16, 0, 0, 0, 0) }),
      {},
      'debug_enabled',
    ],
    ['a platform out of date', (fake) => (fake.quote = { status: 'OutOfDate' }), {}, 'tcb_status_not_accepted'],
    [
      'a quote changed after signing',
      (fake) => (fake.quote = { faults: { reportDataFlipped: true } }),
      {},
      'quote_signature_invalid',
    ],
    ['a quote of another root', (fake) => (fake.quote = { faults: { pckForeignRoot: true } }), {}, 'root_not_trusted'],
    [
      'a mock quote under the vendors’ roots',
      () => {},
      { verifier: createVerifier({ roots: vendorRoots }) },
      'root_not_trusted',
    ],
    [
      'a mock quote in hardware mode, even if somebody trusts its root',
      (fake) => (fake.quote = { mrtd: new Uint8Array(48).fill(10) }),
      { isMock: false, policy: trusted },
      'a mock quote',
    ],
  ])('%s: nothing but a nonce is sent', async (_, change, deps, reason) => {
    const fake = await startFake()
    change(fake)
    const { enclave, lines } = setUp([fake.url], deps)
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    await expect(enclave.signTransactions([toItem(fakeSession as OpenSessionResponse)])).rejects.toEqual(unavailable)
    expect(new Set(fake.paths)).toEqual(new Set(['/attest']))
    expect(lines.at(-1)).toMatchObject({ code: 'not_attested', reason: expect.stringContaining(reason) })
  })

  test.each<[string, (fake: FakeEnclave) => unknown]>([
    [
      'other settings than its configuration names',
      (fake) => (fake.settings = createEnclaveSettings([{ kind: 'satellite', key: satelliteKey }])),
    ],
    ['a configuration that names no settings', (fake) => (fake.config = { ...fakeConfig, version: '0.1.0' })],
  ])('%s: nothing but a nonce is sent either', async (_, change) => {
    const fake = await startFake()
    change(fake)
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(new Set(fake.paths)).toEqual(new Set(['/attest']))
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed', reason: 'settings' })
  })

  test('the next one is used, if it is', async () => {
    const [bad, good] = [await startFake(), await startFake('https')]
    bad.quote = { status: 'OutOfDate' }
    const { enclave } = setUp([bad.url, good.url])
    expect(await enclave.openSession(token)).toEqual(fakeSession)
    expect(bad.paths).toEqual(['/attest'])
  })

  test('each attestation has a nonce of its own', async () => {
    const fake = await startFake()
    for (let run = 0; run < 2; run++) await setUp([fake.url]).enclave.openSession(token)
    const nonces = fake.requests.filter((request) => Object.hasOwn(request as object, 'nonce'))
    expect(new Set(nonces.map((request) => JSON.stringify(request))).size).toBe(2)
  })

  test('no collateral in date: collateral_stale', async () => {
    const fake = await startFake()
    const stale = {
      current: async () => {
        throw new CoordinatorError('collateral_stale', 'no')
      },
    }
    const { enclave } = setUp([fake.url], { collateral: stale })
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('collateral_stale'))
  })

  test('no report of our own to show: enclave_unavailable', async () => {
    const fake = await startFake()
    const { enclave } = setUp([fake.url], {
      callerAttestation: () => {
        throw new CoordinatorError('attestation_invalid', 'none')
      },
    })
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(fake.paths).toEqual([])
  })
})

describe('when and how often an enclave is attested', () => {
  const items = [toItem(fakeSession as OpenSessionResponse)]
  async function startFake() {
    const fake = await startFakeEnclave()
    clean.push(() => fake.close())
    const attestations = () => fake.paths.filter((path) => path === '/attest').length
    return { fake, attestations }
  }

  test('once for many calls that come at once', async () => {
    const { fake, attestations } = await startFake()
    const { enclave } = setUp([fake.url])
    await Promise.all(Array.from({ length: 20 }, () => enclave.signTransactions(items)))
    expect(attestations()).toBe(1)
  })

  test('again after 30 minutes', async () => {
    const { fake, attestations } = await startFake()
    const time = createManualTime(new Date())
    const { enclave } = setUp([fake.url], { clock: time.clock })
    await enclave.signTransactions(items)
    time.jump(1_799_000)
    await enclave.signTransactions(items)
    expect(attestations()).toBe(1)
    time.jump(1_000)
    await enclave.signTransactions(items)
    expect(attestations()).toBe(2)
  })

  test('again when a batch is of another boot; its answer comes with the configuration of now', async () => {
    const { fake, attestations } = await startFake()
    const { enclave } = setUp([fake.url])
    expect((await enclave.signTransactions(items)).config).toEqual(fakeConfig)
    fake.bootId = 'b1'.repeat(16)
    fake.config = { ...fakeConfig, version: toEnclaveVersion('0.2.0', fakeSettings) }
    const { config, batches } = await enclave.signTransactions(items)
    expect(config).toEqual(fake.config)
    expect(batches[0]?.bootId).toBe(fake.bootId)
    expect(attestations()).toBe(2)
  })

  test('a batch of a boot that never attests itself is not used', async () => {
    const { fake } = await startFake()
    fake.handlers['/sign-transactions'] = () => ({ status: 200, body: fakeSigned('b2'.repeat(16)) })
    const { enclave } = setUp([fake.url])
    await expect(enclave.signTransactions(items)).rejects.toEqual(unavailable)
  })

  test('again, once, when the enclave does not know us', async () => {
    const { fake, attestations } = await startFake()
    const refusal = { status: 401, body: { error: { code: 'caller_unknown', message: '' } } }
    let refusals = 1
    fake.handlers['/sign-transactions'] = () =>
      refusals-- > 0 ? refusal : { status: 200, body: fakeSigned(fake.bootId) }
    const { enclave } = setUp([fake.url])
    await expect(enclave.signTransactions(items)).resolves.toHaveProperty('config')
    expect(attestations()).toBe(2)
    refusals = 100
    await expect(enclave.signTransactions(items)).rejects.toEqual(unavailable)
    expect(attestations()).toBe(3)
  })

  test('no more than eight calls are in flight at one enclave', async () => {
    const { fake } = await startFake()
    let inFlight = 0
    let most = 0
    let open = () => {}
    const opened = new Promise<void>((resolve) => (open = resolve))
    fake.handlers['/sign-transactions'] = async () => {
      inFlight += 1
      most = Math.max(most, inFlight)
      if (inFlight === 8) open()
      await opened
      inFlight -= 1
      return { status: 200, body: fakeSigned(fake.bootId) }
    }
    const { enclave } = setUp([fake.url])
    await Promise.all(Array.from({ length: 20 }, () => enclave.signTransactions(items)))
    expect(most).toBe(8)
  })
})

describe('failures of an enclave', () => {
  const items = [toItem(fakeSession as OpenSessionResponse)]
  const token = { idToken: 'token', loginSecret: '11'.repeat(32) }
  async function startTwo() {
    const fakes = [await startFakeEnclave(), await startFakeEnclave()] as const
    for (const fake of fakes) clean.push(() => fake.close())
    return fakes
  }
  const refuse = (status: number, code: string) => () => ({ status, body: { error: { code, message: '' } } })

  test('down, at each kind of address: enclave_unavailable', async () => {
    for (const url of ['http://127.0.0.1:1', 'unix:/nonexistent/socket', 'https://127.0.0.1:1']) {
      await expect(setUp([url]).enclave.openSession(token)).rejects.toEqual(unavailable)
    }
  })

  test('an https address that speaks no TLS', async () => {
    const [fake] = await startTwo()
    const { enclave } = setUp([fake.url.replace('http:', 'https:')])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(fake.paths).toEqual([])
  })

  test('the first is tried again once a minute, by one call, until it answers; then it is the one in use', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    clean.push(async () => void vi.useRealTimers())
    const [first, second] = await startTwo()
    const { enclave } = setUp([first.url, second.url])
    const isSigning = (path: string) => path === '/sign-transactions'
    const tried = () => [first, second].map(({ paths }) => paths.filter(isSigning).length)
    first.handlers['/sign-transactions'] = refuse(503, 'quote_unavailable')
    const sign = async (times: number) => {
      for (let time = 0; time < times; time++) await enclave.signTransactions(items)
      return tried()
    }
    expect(await sign(3)).toEqual([1, 3])
    vi.advanceTimersByTime(61_000)
    expect(await sign(3)).toEqual([2, 6])
    delete first.handlers['/sign-transactions']
    vi.advanceTimersByTime(61_000)
    expect(await sign(3)).toEqual([5, 6])
  })

  test('slow: the next one is asked when the time is over', async () => {
    const [slow, good] = await startTwo()
    slow.handlers['/sign-transactions'] = () => new Promise(() => {})
    const { enclave, lines } = setUp([slow.url, good.url], { timeoutMs: 300 })
    await expect(enclave.signTransactions(items)).resolves.toHaveProperty('config')
    expect(lines).toContainEqual(expect.objectContaining({ code: 'timed_out' }))
    const alone = setUp([slow.url], { timeoutMs: 300 })
    await expect(alone.enclave.signTransactions(items)).rejects.toEqual(unavailable)
  })

  test.each([
    [503, 'shutting_down'],
    [503, 'quote_unavailable'],
    [503, 'issuer_unavailable'],
    [500, 'internal'],
    [401, 'caller_clock_skew'],
    [403, 'caller_not_allowed'],
  ])('%d %s: the next one is asked; alone it is enclave_unavailable', async (status, code) => {
    const [bad, good] = await startTwo()
    bad.handlers['/open-session'] = refuse(status, code)
    bad.handlers['/sign-transactions'] = refuse(status, code)
    const { enclave } = setUp([bad.url, good.url])
    await expect(enclave.signTransactions(items)).resolves.toHaveProperty('config')
    const alone = setUp([bad.url])
    await expect(alone.enclave.openSession(token)).rejects.toEqual(unavailable)
    await expect(alone.enclave.signTransactions(items)).rejects.toEqual(unavailable)
  })

  test('no quote for any item: the next one is asked; alone, the items fail', async () => {
    const [bad, good] = await startTwo()
    const failed = { batches: [], results: [{ error: 'quote_unavailable' }] }
    bad.handlers['/sign-transactions'] = () => ({ status: 200, body: failed })
    const { enclave } = setUp([bad.url, good.url])
    expect((await enclave.signTransactions(items)).batches).toHaveLength(1)
    const alone = await setUp([bad.url]).enclave.signTransactions(items)
    expect(alone).toMatchObject(failed)
  })

  test('the error of one item is handed on', async () => {
    const [fake] = await startTwo()
    const body = { batches: [], results: [{ error: 'grant_invalid' }] }
    fake.handlers['/sign-transactions'] = () => ({ status: 200, body })
    expect(await setUp([fake.url]).enclave.signTransactions(items)).toMatchObject(body)
  })

  const session = fakeSession
  test.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['nothing', {}],
    ['a member too many', { ...session, extra: 1 }],
    ['a short sid', { ...session, sid: '51' }],
    ['a sid in capitals', { ...session, sid: 'AB'.repeat(32) }],
    ['a grant that is no text', { ...session, grant: 7 }],
    ['an empty grant', { ...session, grant: '' }],
    ['a grant without end', { ...session, grant: 'x'.repeat(5000) }],
    ['a key id of another length', { ...session, keyId: '1d' }],
    ['an address without 0x', { ...session, address: 'ad'.repeat(20) }],
    ['a time that is none', { ...session, expiresAt: 'soon' }],
  ])('openSession answered with %s: enclave_unavailable', async (_, body) => {
    const [fake] = await startTwo()
    fake.handlers['/open-session'] = () => ({ status: 200, body })
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
  })

  const signed = fakeSigned('b0'.repeat(16))
  const [batch] = signed.batches
  const [result] = signed.results
  test.each<[string, unknown]>([
    ['nothing', {}],
    ['no results', { ...signed, results: [] }],
    ['a result too many', { ...signed, results: [result, result] }],
    ['more batches than items', { ...signed, batches: [batch, batch] }],
    ['a result without its batch', { ...signed, batches: [] }],
    ['a batch that is not there', { ...signed, results: [{ ...result, batch: 1 }] }],
    ['a leaf outside the tree', { ...signed, results: [{ ...result, leafIndex: 1 }] }],
    ['a leaf before the tree', { ...signed, results: [{ ...result, leafIndex: -1 }] }],
    ['a member of its own invention', { ...signed, results: [{ ...result, path: [] }] }],
    ['no statement', { ...signed, results: [{ ...result, statement: null }] }],
    ['an error of its own invention', { ...signed, results: [{ error: 'because' }] }],
    ['an error and a statement', { ...signed, results: [{ ...result, error: 'grant_invalid' }] }],
    ['an empty tree', { ...signed, batches: [{ ...batch, leaves: [] }] }],
    ['a tree that no batch has', { ...signed, batches: [{ ...batch, leaves: Array(257).fill('22'.repeat(32)) }] }],
    ['leaves that are no hashes', { ...signed, batches: [{ ...batch, leaves: ['no'] }] }],
    ['a sequence that is no number', { ...signed, batches: [{ ...batch, sequence: '0' }] }],
    ['a quote without end', { ...signed, batches: [{ ...batch, quote: '00'.repeat(65_537) }] }],
    ['half a byte of quote', { ...signed, batches: [{ ...batch, quote: '000' }] }],
    ['an event log without end', { ...signed, batches: [{ ...batch, eventLog: 'x'.repeat(131_073) }] }],
    ['17 MB', { ...signed, extra: 'x'.repeat(17_000_000) }],
  ])('signTransactions answered with %s: enclave_unavailable', async (_, body) => {
    const [fake] = await startTwo()
    fake.handlers['/sign-transactions'] = () => ({ status: 200, body })
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.signTransactions(items)).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
  })

  test.each<[string, unknown]>([
    ['nothing', {}],
    ['a quote that is none', { quote: '00', config: fakeConfig, tlsKeyHash: '00'.repeat(32), bootId: 'b0'.repeat(16) }],
    ['half a configuration', { quote: '00', config: {}, tlsKeyHash: '00'.repeat(32), bootId: 'b0'.repeat(16) }],
    [
      'a configuration that fits no receipt',
      {
        quote: '00',
        config: { ...fakeConfig, version: 'x'.repeat(300) },
        tlsKeyHash: '00'.repeat(32),
        bootId: 'b0'.repeat(16),
      },
    ],
  ])('attest answered with %s: enclave_unavailable', async (_, body) => {
    const [fake] = await startTwo()
    fake.handlers['/attest'] = () => ({ status: 200, body })
    await expect(setUp([fake.url]).enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(fake.paths).toEqual(['/attest'])
  })

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['HTTP that is not JSON', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'],
    ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"quote":'],
    ['a page of a proxy', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>'],
    ['nothing', ''],
  ])('%s: enclave_unavailable', async (_, text) => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(text))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    clean.push(() => new Promise((resolve) => server.close(resolve)))
    const { enclave } = setUp([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
  })

  test('stopped: calls under way are answered, later ones refused', async () => {
    const [fake] = await startTwo()
    const { enclave } = setUp([fake.url])
    await enclave.signTransactions(items)
    const pending = enclave.signTransactions(items)
    await Promise.resolve()
    await enclave.stop()
    await expect(pending).resolves.toHaveProperty('config')
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('shutting_down'))
  })
})

describe('addresses and policy', () => {
  test.each([
    'http://enclave.example:8090',
    'http://127.0.0.1.example',
    'http://10.0.0.1',
    'ftp://127.0.0.1',
    'https://user:pass@enclave.example',
    'https://enclave.example/path',
    'https://enclave.example/?a=b',
    'unix:socket',
    'enclave',
    '',
  ])('%j is refused', (url) => {
    expect(() => setUp([url])).toThrow(TypeError)
  })

  test('no address at all is refused', () => {
    expect(() => setUp([])).toThrow(TypeError)
  })

  test('hardware needs measurements and configuration hashes', () => {
    const url = 'https://enclave.example'
    for (const policy of [{}, { measurements: [{ mrTd: '00'.repeat(48) }] }, { configHashes: ['00'.repeat(32)] }]) {
      expect(() => setUp([url], { isMock: false, policy })).toThrow(TypeError)
    }
  })
})
