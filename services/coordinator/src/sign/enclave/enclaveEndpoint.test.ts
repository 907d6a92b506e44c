import { createVerifier, vendorRoots } from '@countersign/attestation'
import {
  createEnclaveSettings,
  hashEnclaveConfig,
  type OpenSessionResponse,
  toEnclaveVersion,
  toHex,
} from '@countersign/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toItem } from '../../../../enclave/test/items.ts'
import { satelliteKey } from '../../../../enclave/test/witness.ts'
import { createManualTime } from '../../../test/manualTime.ts'
import { setUp, unavailable, withCode } from '../../../test/sign/enclave/enclaveClient.ts'
import {
  type FakeEnclave,
  fakeConfig,
  fakeSession,
  fakeSettings,
  fakeSigned,
  startFakeEnclave,
} from '../../../test/sign/enclave/httpEnclave.ts'
import { CoordinatorError } from '../../errors.ts'
import type { HttpEnclaveDeps } from './httpEnclave.ts'

describe('an untrusted enclave', () => {
  async function startFake(kind: 'http' | 'https' = 'http') {
    const fake = await startFakeEnclave(kind)
    onTestFinished(() => fake.close())
    return fake
  }
  const token = { idToken: 'token', loginSecret: '11'.repeat(32) }
  const mrTd = '0a'.repeat(48)
  const trusted = { measurements: [{ mrTd }], configHashes: [toHex(hashEnclaveConfig(fakeConfig))] }

  test('accepts the trusted one', async () => {
    const fake = await startFake()
    fake.quote = { mrtd: new Uint8Array(48).fill(10) }
    fake.commitment = 'c1'.repeat(32)
    for (const pin of [{}, { commitments: ['c0'.repeat(32), fake.commitment] }]) {
      const { enclave } = setUp([fake.url], { policy: { ...trusted, ...pin } })
      expect(await enclave.openSession(token)).toEqual(fakeSession)
    }
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
      'a root secret that is not on the list',
      (fake) => (fake.commitment = 'c2'.repeat(32)),
      { policy: { commitments: ['c1'.repeat(32)] } },
      `root secret ${'c2'.repeat(32)}`,
    ],
    [
      'no commitment to a root secret, where there is a list',
      () => {},
      { policy: { commitments: ['c1'.repeat(32)] } },
      'root secret unknown',
    ],
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
    await expect(enclave.signItems([toItem(fakeSession as OpenSessionResponse)])).rejects.toEqual(unavailable)
    expect(new Set(fake.paths)).toEqual(new Set(['/attest']))
    expect(lines.at(-1)).toMatchObject({ code: 'not_attested', reason: expect.stringContaining(reason) })
  })

  test.each<[string, (fake: FakeEnclave) => unknown, string?]>([
    [
      'other settings than its configuration names',
      (fake) => (fake.settings = createEnclaveSettings([{ kind: 'satellite', key: satelliteKey }])),
    ],
    ['a configuration that names no settings', (fake) => (fake.config = { ...fakeConfig, version: '0.1.0' })],
    ['an invalid commitment', (fake) => (fake.commitment = 'C1'.repeat(32)), 'commitment is not valid'],
  ])('%s: nothing but a nonce is sent either', async (_, change, reason = 'settings') => {
    const fake = await startFake()
    change(fake)
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(new Set(fake.paths)).toEqual(new Set(['/attest']))
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed', reason })
  })

  test('uses the next one if that is trusted', async () => {
    const [bad, good] = [await startFake(), await startFake('https')]
    bad.quote = { status: 'OutOfDate' }
    const { enclave } = setUp([bad.url, good.url])
    expect(await enclave.openSession(token)).toEqual(fakeSession)
    expect(bad.paths).toEqual(['/attest'])
  })

  test('each attestation has a new nonce', async () => {
    const fake = await startFake()
    for (let run = 0; run < 2; run++) await setUp([fake.url]).enclave.openSession(token)
    const nonces = fake.requests.filter((request) => Object.hasOwn(request as object, 'nonce'))
    expect(new Set(nonces.map((request) => JSON.stringify(request))).size).toBe(2)
  })

  test('returns collateral_stale without valid collateral', async () => {
    const fake = await startFake()
    const stale = {
      current: async () => {
        throw new CoordinatorError('collateral_stale', 'no')
      },
    }
    const { enclave } = setUp([fake.url], { collateral: stale })
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('collateral_stale'))
  })

  test('returns enclave_unavailable without a report of the coordinator', async () => {
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

describe('when an enclave is attested', () => {
  const items = [toItem(fakeSession as OpenSessionResponse)]
  async function startFake() {
    const fake = await startFakeEnclave()
    onTestFinished(() => fake.close())
    const attestations = () => fake.paths.filter((path) => path === '/attest').length
    return { fake, attestations }
  }

  test('once for concurrent calls', async () => {
    const { fake, attestations } = await startFake()
    const { enclave } = setUp([fake.url])
    await Promise.all(Array.from({ length: 20 }, () => enclave.signItems(items)))
    expect(attestations()).toBe(1)
  })

  test('again after 30 minutes', async () => {
    const { fake, attestations } = await startFake()
    const time = createManualTime(new Date())
    const { enclave } = setUp([fake.url], { clock: time.clock })
    await enclave.signItems(items)
    time.jump(1_799_000)
    await enclave.signItems(items)
    expect(attestations()).toBe(1)
    time.jump(1_000)
    await enclave.signItems(items)
    expect(attestations()).toBe(2)
  })

  test('again if a batch is from another boot; the response has the new configuration', async () => {
    const { fake, attestations } = await startFake()
    const { enclave } = setUp([fake.url])
    expect((await enclave.signItems(items)).config).toEqual(fakeConfig)
    fake.bootId = 'b1'.repeat(16)
    fake.config = { ...fakeConfig, version: toEnclaveVersion('0.2.0', fakeSettings) }
    const { config, batches } = await enclave.signItems(items)
    expect(config).toEqual(fake.config)
    expect(batches[0]?.bootId).toBe(fake.bootId)
    expect(attestations()).toBe(2)
  })

  test('does not use a batch of a boot that was never attested', async () => {
    const { fake } = await startFake()
    fake.handlers['/sign'] = () => ({ status: 200, body: fakeSigned('b2'.repeat(16)) })
    const { enclave } = setUp([fake.url])
    await expect(enclave.signItems(items)).rejects.toEqual(unavailable)
  })

  test('once again if the enclave does not know the coordinator', async () => {
    const { fake, attestations } = await startFake()
    const refusal = { status: 401, body: { error: { code: 'caller_unknown', message: '' } } }
    let refusals = 1
    fake.handlers['/sign'] = () => (refusals-- > 0 ? refusal : { status: 200, body: fakeSigned(fake.bootId) })
    const { enclave } = setUp([fake.url])
    await expect(enclave.signItems(items)).resolves.toHaveProperty('config')
    expect(attestations()).toBe(2)
    refusals = 100
    await expect(enclave.signItems(items)).rejects.toEqual(unavailable)
    expect(attestations()).toBe(3)
  })

  test('makes at most eight concurrent calls to one enclave', async () => {
    const { fake } = await startFake()
    let inFlight = 0
    let most = 0
    let open = () => {}
    const opened = new Promise<void>((resolve) => (open = resolve))
    fake.handlers['/sign'] = async () => {
      inFlight += 1
      most = Math.max(most, inFlight)
      if (inFlight === 8) open()
      await opened
      inFlight -= 1
      return { status: 200, body: fakeSigned(fake.bootId) }
    }
    const { enclave } = setUp([fake.url])
    await Promise.all(Array.from({ length: 20 }, () => enclave.signItems(items)))
    expect(most).toBe(8)
  })
})
