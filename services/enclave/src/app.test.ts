import { randomBytes } from 'node:crypto'
import { createVerifier } from '@countersign/attestation'
import { createSimulator, type SimulatedReportOptions } from '@countersign/attestation/simulator'
import { createSimulatedQuoteSource, EvidenceError, type QuoteSource } from '@countersign/evidence'
import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import {
  type AttestResponse,
  computeEnclaveAttestReportData,
  computeSnpReportData,
  computeTdxReportData,
  createEnclaveSettings,
  type EnclaveConfig,
  enclavePaths,
  fromHex,
  hashAuthorization,
  hashEnclaveConfig,
  hashLeaf,
  hashMessage,
  hashOwner,
  hashTree,
  hashTypedData,
  type Kind,
  type OpenSessionResponse,
  rootSecretPaths,
  type SignItemsResponse,
  toCanonicalJson,
  toEnclaveVersion,
  toHex,
  toSessionName,
  type VaultResponse,
} from '@countersign/protocol'
import { createLog } from '@countersign/service'
import { createTx, toDigest } from '@countersign/testing/stack'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../test/clientKey.ts'
import { createTestCoordinator } from '../test/coordinator.ts'
import {
  cosign,
  createSignedItem,
  createTestLog,
  open,
  origins,
  sign as signStatements,
  toLeaf,
} from '../test/statementLog.ts'
import { createKnownTime } from '../test/time/time.ts'
import { createWitness, satelliteKey } from '../test/witness.ts'
import { type AppDeps, createApp } from './app.ts'
import { type CallerPolicy, createCallers } from './callers.ts'
import { createKeyWorker, type KeyWorker } from './keys/keyWorker.ts'
import type { Donor } from './rootSecret/donor.ts'
import { computeCommitment, RootSecretError } from './rootSecret/rootSecretHolder.ts'
import { createBatcher } from './sign/batch.ts'
import { createSamples } from './sign/samples.ts'
import { createTime } from './time/time.ts'
import { createPolicyTexts } from './vault/policyMemory.ts'

const at = new Date('2026-06-15T12:00:00.000Z')
const clock = { now: () => at.getTime() }
const simulator = createSimulator({ at })
const verifier = createVerifier({ roots: [simulator.intelRoot, simulator.amdRoot] })
const quoteSource = createSimulatedQuoteSource({ simulator, latencyMs: 0 })
const settings = createEnclaveSettings([{ kind: 'satellite', key: satelliteKey }])
const config: EnclaveConfig = {
  issuers: [{ issuer: 'https://issuer.example', audience: 'a', jwksOrigin: 'https://issuer.example' }],
  caSet: 'bundled',
  rootSecret: 'file',
  quoteSource: 'mock',
  callerPolicy: 'any',
  version: toEnclaveVersion('0.0.0', settings),
}
const bootId = new Uint8Array(16).fill(3)
const coordinator = createTestCoordinator()
const random = (length: number) => new Uint8Array(randomBytes(length))
const lines: string[] = []
let keyWorker: KeyWorker

beforeAll(async () => {
  keyWorker = await createKeyWorker({
    rootSecret: new Uint8Array(32).map((_, index) => index),
    configHash: hashEnclaveConfig(config),
    implementations: settings.implementations,
  })
})
afterAll(() => keyWorker.close())

function startApp(changes: Partial<AppDeps> & { policy?: CallerPolicy } = {}) {
  const { policy = { kind: 'any' }, ...rest } = changes
  const log = createLog((line) => lines.push(line), clock.now)
  const source = rest.quoteSource ?? quoteSource
  const time = rest.time ?? createKnownTime(clock)
  return createApp({
    callers: createCallers({ policy, verifier, clock }),
    idTokens: {
      verify: async ({ idToken }) => ({
        issuer: 'https://issuer.example',
        subject: idToken,
        email: null,
        issuedAt: time.now(),
      }),
    },
    keyWorker,
    batcher: createBatcher({ quoteSource: source, bootId, configHash: hashEnclaveConfig(config), limit: 256, log }),
    quoteSource: source,
    config,
    bootId,
    tlsKeyHash: new Uint8Array(32).fill(4),
    settings,
    samples: createSamples({ sources: settings.entropy, time }),
    policyTexts: createPolicyTexts(),
    time,
    random,
    sessionTtlMs: 60_000,
    log,
    version: '0.0.0',
    ...rest,
  })
}

type Sent = {
  method?: string
  path: string
  request?: unknown
  body?: Uint8Array
  headers?: Record<string, string>
  timeMs?: number
}

function send(app: ReturnType<typeof startApp>, sent: Sent) {
  const body = sent.body ?? new TextEncoder().encode(JSON.stringify(sent.request ?? {}))
  const headers = sent.headers ?? coordinator.sign({ path: sent.path, body, timeMs: sent.timeMs ?? at.getTime() })
  return app.handle({ method: sent.method ?? 'POST', path: sent.path, headers, body })
}

async function openSession(app: ReturnType<typeof startApp>, subject: string, clientKey?: string) {
  const request = { idToken: subject, loginSecret: '00'.repeat(32), clientKey }
  return (await send(app, { path: enclavePaths.openSession, request })).body as OpenSessionResponse
}

const txMetadata = createTx(0)
const digest = toDigest(txMetadata)

function toItem({ sid, grant, keyId }: OpenSessionResponse, changes: object = {}) {
  const wanted = { kind: 'transaction', statementVersion: 1, digest, txMetadata }
  return { sid, grant, keyId, ...wanted, witness: createWitness(at.getTime()), ...changes }
}

test('derives a vault for a session and signs what its policy allows', async () => {
  const app = startApp()
  const alice = await openSession(app, 'alice')
  const rule = {
    kind: 'transaction',
    chainIds: [31337],
    to: 'any',
    maxValueWei: '1',
    maxFeeWei: '42000',
    approvals: 0,
    approvers: 'any',
  }
  const policy = new TextDecoder().decode(toCanonicalJson({ version: 1, log: null, approvers: [], rules: [rule] }))
  const path = enclavePaths.vault
  const { status, body } = await send(app, { path, request: { sid: alice.sid, grant: alice.grant, policy } })
  expect(status).toBe(200)
  const vault = body as VaultResponse
  const changes = { keyId: vault.keyId, vault: { policy: vault.policy, rule: 0 }, statementVersion: 2 }
  const { body: signed } = await send(app, { path: enclavePaths.sign, request: { items: [toItem(alice, changes)] } })
  const stated = { address: vault.address, publicKey: vault.publicKey, policy: vault.policy }
  expect(signed).toMatchObject({ results: [{ statement: stated }] })
  for (const [changed, expected, code] of [
    [{ policy: '{}' }, 400, 'invalid_policy'],
    [{ sid: '00'.repeat(32) }, 403, 'grant_invalid'],
    [{ policy: 1 }, 400, 'invalid_request'],
  ] as const) {
    const request = { sid: alice.sid, grant: alice.grant, policy, ...changed }
    expect(await send(app, { path, request })).toMatchObject({ status: expected, body: { error: { code } } })
  }
})

describe('sign', () => {
  test('returns a statement per item, and a quote that covers it and verifies', async () => {
    const app = startApp()
    const sessions = await Promise.all(['alice', 'bob', 'carol'].map((subject) => openSession(app, subject)))
    const request = { items: sessions.map((session) => toItem(session)) }
    const { status, body } = await send(app, { path: enclavePaths.sign, request })
    expect(status).toBe(200)
    const { batches, results } = body as SignItemsResponse
    for (const [index, result] of results.entries()) {
      if ('error' in result) throw new Error(result.error)
      const batch = batches[result.batch]
      if (batch === undefined) throw new Error('no batch')
      expect(result.statement).toMatchObject({ address: sessions[index]?.address, coordinatorKey: coordinator.key })
      expect(batch.leaves[result.leafIndex]).toBe(toHex(hashLeaf(result.statement)))
      const verified = await verifier.verifyQuote({
        quote: fromHex(batch.quote),
        collateral: simulator.collateral(),
        at,
      })
      expect(toHex(verified.body.reportData)).toBe(
        toHex(
          computeTdxReportData({
            treeSize: batch.leaves.length,
            root: hashTree(batch.leaves.map(fromHex)),
            bootId,
            batchSequence: batch.sequence,
            previousBatchHash: fromHex(batch.previous),
            configHash: hashEnclaveConfig(config),
          }),
        ),
      )
    }
  })

  test('an invalid item fails alone', async () => {
    const app = startApp()
    const alice = await openSession(app, 'alice')
    const bob = await openSession(app, 'bob')
    const items = [
      toItem(alice),
      'nonsense',
      toItem(alice, { sid: bob.sid }),
      toItem(alice, { digest: `0x${'33'.repeat(32)}` }),
      toItem(alice, { extra: 1 }),
      toItem(alice, { witness: { ...createWitness(at.getTime()), valueHex: 'XYZ' } }),
      toItem(alice, { txMetadata: {} }),
      toItem(bob),
    ]
    const { body } = await send(app, { path: enclavePaths.sign, request: { items } })
    const { results } = body as SignItemsResponse
    expect(results.map((result) => ('error' in result ? result.error : 'signed'))).toEqual([
      'signed',
      'invalid_request',
      'grant_invalid',
      'digest_mismatch',
      'invalid_request',
      'invalid_request',
      'invalid_tx_metadata',
      'signed',
    ])
  })

  test('an item nested thousands of levels deep fails alone, and the enclave continues', async () => {
    const app = startApp()
    const alice = await openSession(app, 'alice')
    const text = JSON.stringify({ items: [toItem(alice, { txMetadata: 'DEEP' }), toItem(alice)] })
    const body = new TextEncoder().encode(text.replace('"DEEP"', '['.repeat(20_000) + ']'.repeat(20_000)))
    const reply = await send(app, { path: enclavePaths.sign, body })
    expect(reply).toMatchObject({ status: 200, body: { results: [{ error: 'invalid_request' }, { leafIndex: 0 }] } })
  })

  test('of three signatures with one sample, only the first and its repetition succeed', async () => {
    const app = startApp()
    const alice = await openSession(app, 'alice')
    const bob = await openSession(app, 'bob')
    const witness = createWitness(at.getTime())
    const other = createTx(1)
    const items = [
      toItem(alice, { witness }),
      toItem(bob, { witness }),
      toItem(alice, { witness, txMetadata: other, digest: toDigest(other) }),
    ]
    const sign = async (request: object) => {
      const { body } = await send(app, { path: enclavePaths.sign, request })
      return (body as SignItemsResponse).results.map((result) => ('error' in result ? result.error : 'signed'))
    }
    expect(await sign({ items: [items[0]] })).toEqual(['signed'])
    expect(await sign({ items })).toEqual(['signed', 'entropy_used', 'entropy_used'])
    const stranger = { ...createWitness(at.getTime()), publicKey: coordinator.key }
    expect(await sign({ items: [toItem(alice, { witness: stranger })] })).toEqual(['entropy_refused'])
  })

  test('while the clock is behind, signatures are dated and grants expire by the time floor', async () => {
    const time = createKnownTime(clock)
    const app = startApp({ time })
    const alice = await openSession(app, 'alice')
    expect(alice.expiresAt).toBe(new Date(at.getTime() + 60_000).toISOString())
    const sign = async (aheadMs: number) => {
      const request = { items: [toItem(alice, { witness: createWitness(at.getTime() + aheadMs) })] }
      const { body } = await send(app, { path: enclavePaths.sign, request })
      const [result] = (body as SignItemsResponse).results
      return result !== undefined && 'statement' in result ? result.statement.signedAt : result?.error
    }
    expect(await sign(30_000)).toBe(new Date(at.getTime() + 30_000).toISOString())
    expect(await sign(0)).toBe(new Date(at.getTime() + 30_000).toISOString())
    expect(await sign(60_000)).toBe('session_expired')
  })

  test('a session lasts from its token’s time: a clock that was ahead when it was opened does not extend it', async () => {
    let aheadMs = 59_999
    const idTokens = { verify: async () => ({ issuer: 'i', subject: 's', email: null, issuedAt: at.getTime() }) }
    const app = startApp({ idTokens, time: createKnownTime({ now: () => at.getTime() + aheadMs }) })
    expect((await openSession(app, 'alice')).expiresAt).toBe(new Date(at.getTime() + 60_000).toISOString())
    aheadMs += 1
    const request = { idToken: 'alice', loginSecret: '11'.repeat(32) }
    const refused = { status: 403, body: { error: { code: 'id_token_invalid' } } }
    expect(await send(app, { path: enclavePaths.openSession, request })).toMatchObject(refused)
  })

  test('any coordinator with secret and grant can sign until the grant expires: the enclave knows no sign-out', async () => {
    let nowMs = at.getTime()
    const app = startApp({ time: createKnownTime({ now: () => nowMs }) })
    const alice = await openSession(app, 'alice')
    const path = enclavePaths.sign
    const sign = async () => {
      const body = new TextEncoder().encode(
        JSON.stringify({ items: [toItem(alice, { witness: createWitness(nowMs) })] }),
      )
      const headers = createTestCoordinator().sign({ path, body, timeMs: at.getTime() })
      const [result] = ((await send(app, { path, body, headers })).body as SignItemsResponse).results
      return result !== undefined && 'error' in result ? result.error : 'signed'
    }
    nowMs = Date.parse(alice.expiresAt) - 1
    expect(await sign()).toBe('signed')
    nowMs += 1
    expect(await sign()).toBe('session_expired')
  })

  test('returns 503 and signs nothing before the time is known', async () => {
    const alice = await openSession(startApp(), 'alice')
    const app = startApp({ time: createTime({ clock, elapsedMs: () => 0 }) })
    const request = { items: [toItem(alice)] }
    const unknown = { status: 503, body: { error: { code: 'time_unknown' } } }
    expect(await send(app, { path: enclavePaths.sign, request })).toMatchObject(unknown)
    expect(await send(app, { method: 'GET', path: '/health' })).toMatchObject({ body: { status: 'waiting' } })
  })

  test('releases no signature without a quote', async () => {
    const failing: QuoteSource = {
      mode: 'mock',
      getQuote: () => Promise.reject(new EvidenceError('evidence_busy', 'busy')),
    }
    const app = startApp({ quoteSource: failing })
    const alice = await openSession(app, 'alice')
    const { body } = await send(app, { path: enclavePaths.sign, request: { items: [toItem(alice)] } })
    expect(body).toEqual({ batches: [], results: [{ error: 'quote_unavailable' }] })
  })

  test.each([
    ['no items', { items: [] }],
    ['257 items', { items: Array.from({ length: 257 }, () => ({})) }],
    ['no list', { items: {} }],
    ['nothing', {}],
    ['a list', []],
    ['another member', { items: [{}], digest: '0x' }],
  ])('%s is refused as a whole', async (_, request) => {
    expect(await send(startApp(), { path: enclavePaths.sign, request })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_request' } },
    })
  })
})

describe('a session with a client key', () => {
  const implementation = `0x${'77'.repeat(20)}` as const
  const authorization = { chainId: 1, address: implementation, nonce: 0 }
  const message = { message: '0x68656c6c6f' } as const
  const typedData = {
    domain: { name: 'Note', chainId: 1 },
    types: { Note: [{ name: 'text', type: 'string' }] },
    primaryType: 'Note',
    message: { text: 'hello' },
  }
  const digestOf = { transaction: fromHex(digest.slice(2)), message: hashMessage(message.message) }
  type StampedKind = Exclude<Kind, 'revocation'>
  const contents = {
    transaction: { content: { statementVersion: 2, digest, txMetadata }, digest: digestOf.transaction },
    message: { content: { content: message }, digest: digestOf.message },
    'typed-data': { content: { content: typedData }, digest: hashTypedData(typedData) },
    authorization: { content: { authorization }, digest: hashAuthorization(authorization) },
    address: { content: {}, digest: null },
  } satisfies Record<StampedKind, { content: object; digest: Uint8Array | null }>
  const kindNames = Object.keys(contents) as StampedKind[]
  const rule = {
    kind: 'transaction',
    chainIds: [31337],
    to: 'any',
    maxFeeWei: '42000',
    approvals: 0,
    approvers: 'any',
  } as const
  /** Two rules allow the transaction, the last one does not. */
  const policy = createPolicy({
    version: 1,
    log: null,
    approvers: [],
    rules: [
      { ...rule, maxValueWei: '1' },
      { ...rule, maxValueWei: '2' },
      { ...rule, chainIds: [1], maxValueWei: '3' },
    ],
  })
  const policyText = new TextDecoder().decode(toPolicyBytes(policy))
  const [one = -1, two = -1, other = -1] = ['1', '2', '3'].map((value) =>
    policy.rules.findIndex((each) => each.kind === 'transaction' && each.maxValueWei === value),
  )
  const browser = createClient()
  let workers: KeyWorker[] = []

  const createWorker = () =>
    createKeyWorker({
      rootSecret: new Uint8Array(32).map((_, index) => index),
      configHash: hashEnclaveConfig(config),
      implementations: [implementation],
    })
  const startBound = (at = 0, changes: Partial<AppDeps> = {}) =>
    startApp({ keyWorker: workers[at] as KeyWorker, ...changes })
  beforeAll(async () => {
    workers = await Promise.all([createWorker(), createWorker()])
  })
  afterAll(() => Promise.all(workers.map((worker) => worker.close())))

  /** An item with the stamp of its own request, or of a changed one. */
  function toStamped(
    kind: StampedKind,
    { sid, grant, keyId, address }: OpenSessionResponse,
    { by = browser, ...changes }: Partial<Parameters<typeof browser.stamp>[0]> & { by?: typeof browser } = {},
  ) {
    const { content, digest } = contents[kind]
    const stamp = by.stamp({ address, vault: null, kind, digest, issuedMs: at.getTime(), ...changes })
    return { sid, grant, keyId, kind, ...content, witness: createWitness(at.getTime()), stamp }
  }

  async function signOne(app: ReturnType<typeof startApp>, item: object, policies?: string[]) {
    const request = { items: [item], ...(policies && { policies }) }
    const { status, body } = await send(app, { path: enclavePaths.sign, request })
    expect(status).toBe(200)
    const [result] = (body as SignItemsResponse).results
    if (result === undefined) throw new Error('no result')
    return result
  }
  const codeOf = async (...parameters: Parameters<typeof signOne>) => {
    const result = await signOne(...parameters)
    return 'error' in result ? result.error : 'signed'
  }
  /** The wallet's signature, of content that is off-chain too. */
  function signatureOf(result: Awaited<ReturnType<typeof signOne>>): unknown {
    if ('opening' in result && typeof result.opening?.signature === 'object') return result.opening.signature.signature
    return 'subject' in result && 'signature' in result.subject ? result.subject.signature : undefined
  }

  async function createVaultOf(app: ReturnType<typeof startApp>, { sid, grant }: OpenSessionResponse) {
    const { body } = await send(app, { path: enclavePaths.vault, request: { sid, grant, policy: policyText } })
    return body as VaultResponse
  }

  test.each(kindNames)('signs with a stamp, and names the key in the statement (%s)', async (kind) => {
    const app = startBound()
    const alice = await openSession(app, 'alice', browser.clientKey)
    const name = toSessionName({ clientKey: browser.clientKey, address: alice.address })
    expect(await signOne(app, toStamped(kind, alice))).toMatchObject({ statement: { session: name, rule: null } })
    const cookie = await openSession(app, 'alice')
    const { stamp: _, ...item } = toStamped(kind, cookie)
    expect(await signOne(app, item)).toMatchObject({ statement: { session: 'cookie', address: alice.address } })
  })

  test.each(kindNames)('signs nothing without its own stamp, though the setting is `any` (%s)', async (kind) => {
    expect(settings.sessions).toBe('any')
    const app = startBound()
    const alice = await openSession(app, 'alice', browser.clientKey)
    const bob = await openSession(app, 'bob', browser.clientKey)
    const { stamp: _, ...unstamped } = toStamped(kind, alice)
    expect(await codeOf(app, unstamped)).toBe('stamp_missing')
    const policyHash = toHex(hashPolicy(policy))
    const wrong: Parameters<typeof toStamped>[2][] = [
      { by: createClient() },
      { address: bob.address },
      { vault: { policy: policyHash, rule: null } },
      { vault: { policy: '00'.repeat(32), rule: 0 } },
      { digest: new Uint8Array(32).fill(1) },
      ...kindNames.filter((each) => each !== kind).map((each) => ({ kind: each })),
    ]
    for (const changes of wrong) expect(await codeOf(app, toStamped(kind, alice, changes))).toBe('stamp_invalid')
    for (const offset of [-300_001, 60_001, -at.getTime()]) {
      expect(await codeOf(app, toStamped(kind, alice, { issuedMs: at.getTime() + offset }))).toBe('stamp_time')
    }
    const good = toStamped(kind, alice)
    const later = { ...good, stamp: { ...good.stamp, issuedMs: good.stamp.issuedMs + 1 } }
    expect(await codeOf(app, later)).toBe('stamp_invalid')
    for (const offset of [-300_000, 60_000]) {
      expect(await codeOf(app, toStamped(kind, alice, { issuedMs: at.getTime() + offset }))).toBe('signed')
    }
  })

  test.each(kindNames)(
    'accepts a stamp again after a lost answer, after a restart and at a second enclave (%s)',
    async (kind) => {
      const app = startBound()
      const alice = await openSession(app, 'alice', browser.clientKey)
      const item = toStamped(kind, alice)
      const first = await signOne(app, item)
      const restarted = await createWorker()
      const toAgain = () => ({ ...item, witness: createWitness(at.getTime()) })
      const again = [
        await signOne(app, toAgain()),
        await signOne(startBound(0, { keyWorker: restarted }), toAgain()),
        await signOne(startBound(1), toAgain()),
      ]
      await restarted.close()
      for (const result of again) {
        expect(result).toHaveProperty('statement')
        expect(signatureOf(result)).toBe(signatureOf(first))
      }
      expect(signatureOf(first)).toEqual(kind === 'address' ? undefined : expect.stringMatching(/^0x[0-9a-f]{130}$/))
    },
  )

  test.each(kindNames)('rejects Alice’s stamps under Bob’s session with her public key (%s)', async (kind) => {
    const app = startBound()
    const alice = await openSession(app, 'alice', browser.clientKey)
    // The key in a grant is public, so Bob can open a session with it.
    const bob = await openSession(app, 'bob', browser.clientKey)
    const hers = toStamped(kind, alice)
    const trySign = (changes: object) => codeOf(app, { ...hers, witness: createWitness(at.getTime()), ...changes })
    const { sid, grant, keyId } = bob
    expect(await trySign({ sid, grant, keyId })).toBe('stamp_invalid')
    expect(await trySign({ sid, grant })).toBe('key_binding_mismatch')
    // In this test, every session has another secret.
    expect(await trySign({ sid })).toBe('grant_invalid')
    expect(await trySign({ keyId })).toBe('key_binding_mismatch')
    expect(await trySign({})).toBe('signed')
  })

  test('a stamp is for one vault and one rule', async () => {
    const app = startBound()
    const alice = await openSession(app, 'alice', browser.clientKey)
    const bob = await openSession(app, 'bob', browser.clientKey)
    const vault = await createVaultOf(app, alice)
    const twin = await createVaultOf(app, bob)
    const toVaultItem = (rule: number, stamped: { rule?: number; address?: `0x${string}`; hash?: string } = {}) => {
      const { address = vault.address, hash = vault.policy } = stamped
      const use = { vault: { policy: hash, rule: stamped.rule ?? rule }, address }
      return { ...toStamped('transaction', alice, use), keyId: vault.keyId, vault: { policy: vault.policy, rule } }
    }
    for (const rule of [one, two]) {
      expect(await signOne(app, toVaultItem(rule))).toMatchObject({ statement: { address: vault.address, rule } })
    }
    expect(await codeOf(app, toVaultItem(one, { rule: two }))).toBe('stamp_invalid')
    expect(await codeOf(app, toVaultItem(one, { hash: '00'.repeat(32) }))).toBe('stamp_invalid')
    expect(await codeOf(app, toVaultItem(one, { address: alice.address }))).toBe('stamp_invalid')
    // The rules are checked only after the stamp, and no other rule is.
    expect(await codeOf(app, toVaultItem(other))).toBe('policy_refused')
    expect(await codeOf(app, toVaultItem(policy.rules.length))).toBe('policy_refused')
    const { vault: _, ...withoutVault } = toVaultItem(one)
    expect(await codeOf(app, { ...withoutVault, keyId: alice.keyId })).toBe('stamp_invalid')
    // The twin vault: the same policy, of another owner.
    const { sid, grant } = bob
    expect(await codeOf(app, { ...toVaultItem(one), sid, grant, keyId: twin.keyId })).toBe('stamp_invalid')
  })

  test('a session without a client key signs nothing that has a stamp', async () => {
    const app = startBound()
    const cookie = await openSession(app, 'alice')
    for (const kind of kindNames) expect(await codeOf(app, toStamped(kind, cookie))).toBe('stamp_invalid')
  })

  test('with the setting `bound`, no session opens without a client key, and the token is not used up', async () => {
    let verified = 0
    const idTokens = {
      async verify() {
        verified += 1
        return { issuer: 'i', subject: 's', email: null, issuedAt: at.getTime() }
      },
    }
    const bound = createEnclaveSettings(settings.entropy, [], null, 'bound')
    const app = startBound(0, { idTokens, settings: bound })
    const open = (clientKey?: unknown) => {
      const request = { idToken: 'x', loginSecret: '00'.repeat(32), clientKey }
      return send(app, { path: enclavePaths.openSession, request })
    }
    expect(await open()).toMatchObject({ status: 403, body: { error: { code: 'session_not_bound' } } })
    const { clientKey } = browser
    const invalid = [
      null,
      '',
      clientKey.slice(2),
      clientKey.toUpperCase(),
      `04${'11'.repeat(64)}`,
      `02${clientKey.slice(2)}`,
      `04${'00'.repeat(64)}`,
    ]
    for (const key of invalid) expect(await open(key)).toMatchObject({ status: 400 })
    expect(verified).toBe(0)
    expect(await open(clientKey)).toMatchObject({ status: 200 })
  })

  test('the opening of the owner comes back at every sign-in, at every enclave, and opens the attested address', async () => {
    const apps = [startBound(0), startBound(1)]
    const sessions: OpenSessionResponse[] = []
    for (const app of apps)
      sessions.push(await openSession(app, 'alice'), await openSession(app, 'alice', browser.clientKey))
    const [first] = sessions as [OpenSessionResponse]
    expect(first.owner.identity).toEqual({ issuer: 'https://issuer.example', subject: 'alice', email: null })
    for (const { owner } of sessions) expect(owner).toEqual(first.owner)
    const [app = startBound()] = apps
    const vault = await createVaultOf(app, first)
    expect(await createVaultOf(apps[1] ?? app, sessions[2] ?? first)).toEqual(vault)
    expect(vault.owner.identity).toEqual(first.owner.identity)
    expect(vault.owner.salt).not.toBe(first.owner.salt)
    const { sid, grant, keyId } = first
    const item = { sid, grant, keyId, kind: 'address', witness: createWitness(at.getTime()) }
    const ofWallet = { address: first.address, policy: null, owner: toHex(hashOwner(first.owner)) }
    expect(await signOne(app, item)).toMatchObject({ subject: ofWallet })
    const ofVault = { address: vault.address, policy: vault.policy, owner: toHex(hashOwner(vault.owner)) }
    const use = { keyId: vault.keyId, vault: { policy: vault.policy } }
    expect(await signOne(app, { ...item, ...use, witness: createWitness(at.getTime()) })).toMatchObject({
      subject: ofVault,
    })
    expect((await openSession(app, 'bob')).owner.salt).not.toBe(first.owner.salt)
  })

  test.each([
    ['a cookie', false],
    ['a client key', true],
  ])('statements of one person’s addresses have nothing in common, in a session with %s', async (_, isBound) => {
    const app = startBound()
    const open = async (subject: string, client = createClient()) => ({
      client,
      session: await openSession(app, subject, isBound ? client.clientKey : undefined),
    })
    type Opened = Awaited<ReturnType<typeof open>>
    async function valuesOf({ client, session }: Opened, vault?: VaultResponse): Promise<unknown[]> {
      const { address, keyId } = vault ?? session
      const use = vault && { policy: vault.policy }
      const item = { ...toStamped('address', session), keyId, ...(use && { vault: use }), stamp: undefined }
      const stamped = { address, vault: use ? { ...use, rule: null } : null, kind: 'address', digest: null } as const
      const stamp = isBound ? client.stamp({ ...stamped, issuedMs: at.getTime() }) : undefined
      const result = await signOne(app, { ...item, stamp })
      if (!('subject' in result)) throw new Error('not signed')
      return Object.values({ ...result.statement, ...result.subject })
    }
    const [alice, bob] = [await open('alice'), await open('bob')]
    const wallet = await valuesOf(alice)
    const vault = await valuesOf(alice, await createVaultOf(app, alice.session))
    const others = await valuesOf(bob)
    const shared = wallet.filter((value) => vault.includes(value) && !others.includes(value))
    expect(shared).toEqual([])
  })

  test('another e-mail address gives another commitment, and the same wallet', async () => {
    let email: string | null = null
    const idTokens = {
      verify: async () => ({ issuer: 'https://issuer.example', subject: 'alice', email, issuedAt: at.getTime() }),
    }
    const app = startBound(0, { idTokens })
    const before = await openSession(app, 'alice')
    email = 'alice@mail.example'
    const after = await openSession(app, 'alice')
    expect(after.address).toBe(before.address)
    expect(after.owner.identity.email).toBe(email)
    expect(after.owner.salt).not.toBe(before.owner.salt)
    expect(hashOwner(after.owner)).not.toEqual(hashOwner(before.owner))
  })

  test('the longest identity fits into a grant', async () => {
    const verify = async () => ({
      issuer: `https://issuer.example/${'i'.repeat(200)}`,
      subject: 's'.repeat(255),
      email: `${'\u{1f600}'.repeat(242)}@example.org`,
      issuedAt: at.getTime(),
    })
    const app = startBound(0, { idTokens: { verify } })
    const session = await openSession(app, 'alice', browser.clientKey)
    expect(await codeOf(app, toStamped('transaction', session))).toBe('signed')
  })
})

describe('there are no other routes', () => {
  test.each([
    ['GET', '/sign', 405],
    ['POST', '/sign-transactions', 404],
    ['POST', '/sign-digest', 404],
    ['POST', '/sign/', 404],
    ['POST', '/sign?x=1', 404],
    ['POST', '/export', 404],
    ['POST', '/health', 405],
  ])('%s %s is refused with %d', async (method, path, status) => {
    expect((await send(startApp(), { method, path })).status).toBe(status)
  })

  const path = enclavePaths.sign
  const body = new TextEncoder().encode('{"items":[{}]}')
  const signed = (changes: Partial<{ path: string; body: Uint8Array; timeMs: number }> = {}) =>
    coordinator.sign({ path, body, timeMs: at.getTime(), ...changes })

  test.each<[string, Record<string, string>, string]>([
    ['unsigned', {}, 'caller_signature_invalid'],
    ['another path', signed({ path: enclavePaths.attest }), 'caller_signature_invalid'],
    ['another body', signed({ body: new Uint8Array() }), 'caller_signature_invalid'],
    [
      'another time than signed',
      { ...signed(), 'countersign-time': String(at.getTime() + 1) },
      'caller_signature_invalid',
    ],
    ['another key', { ...signed(), 'countersign-caller': createTestCoordinator().key }, 'caller_signature_invalid'],
    ['a key that is no point', { ...signed(), 'countersign-caller': 'ff'.repeat(32) }, 'caller_signature_invalid'],
    ['a key of small order', { ...signed(), 'countersign-caller': '00'.repeat(32) }, 'caller_signature_invalid'],
    ['a signature cut short', { ...signed(), 'countersign-signature': '00'.repeat(63) }, 'caller_signature_invalid'],
    ['30 s and a bit ago', signed({ timeMs: at.getTime() - 30_001 }), 'caller_clock_skew'],
    ['30 s and a bit ahead', signed({ timeMs: at.getTime() + 30_001 }), 'caller_clock_skew'],
  ])('a call that is %s is refused', async (_, headers, code) => {
    expect(await send(startApp(), { path, body, headers })).toMatchObject({ status: 401, body: { error: { code } } })
  })

  test.each(['', '{', 'nul', '"x"\u0000', '\u{FEFF}{}'])('rejects a body that is not JSON (%j)', async (text) => {
    const reply = await send(startApp(), { path, body: new TextEncoder().encode(text) })
    expect(reply).toMatchObject({ status: 400, body: { error: { code: expect.stringMatching(/^invalid_/) } } })
  })
})

describe('attest', () => {
  test('the quote covers the nonce, the TLS key and the configuration', async () => {
    const nonce = '55'.repeat(32)
    const { body } = await send(startApp(), { path: enclavePaths.attest, request: { nonce } })
    const answer = body as AttestResponse
    expect(answer).toMatchObject({ config, settings, tlsKeyHash: '04'.repeat(32), bootId: '03'.repeat(16) })
    const verified = await verifier.verifyQuote({
      quote: fromHex(answer.quote),
      collateral: simulator.collateral(),
      at,
    })
    const expected = computeEnclaveAttestReportData({
      tlsKeyHash: fromHex(answer.tlsKeyHash),
      nonce: fromHex(nonce),
      configHash: hashEnclaveConfig(answer.config),
    })
    expect(toHex(verified.body.reportData)).toBe(toHex(expected))
  })

  test('names the root secret by its commitment, like backups', async () => {
    const { body } = await send(startApp(), { path: enclavePaths.attest, request: { nonce: '55'.repeat(32) } })
    const commitment = computeCommitment(new Uint8Array(32).map((_, index) => index))
    expect(body).toHaveProperty('commitment', toHex(commitment))
  })

  test('rejects a flood of attestations without delaying signing', async () => {
    const source = createSimulatedQuoteSource({ simulator, latencyMs: 0 })
    const held: (() => void)[] = []
    let isHolding = true
    const getQuote: QuoteSource['getQuote'] = async (reportData) => {
      if (isHolding) await new Promise<void>((resolve) => held.push(resolve))
      return source.getQuote(reportData)
    }
    const app = startApp({ quoteSource: { mode: 'mock', getQuote } })
    const alice = await openSession(app, 'alice')
    const answered: number[] = []
    const attests = Array.from({ length: 50 }, async () => {
      const { status } = await send(app, { path: enclavePaths.attest, request: { nonce: '55'.repeat(32) } })
      answered.push(status)
    })
    // Before any quote is ready, all but four are rejected.
    await expect.poll(() => answered.length, { interval: 5 }).toBe(46)
    expect(new Set(answered)).toEqual(new Set([503]))
    const signing = send(app, { path: enclavePaths.sign, request: { items: [toItem(alice)] } })
    // One attestation has requested its quote and three wait for it. The signature waits for none of them.
    await expect.poll(() => held.length, { interval: 5 }).toBe(2)
    held[1]?.()
    expect(((await signing).body as SignItemsResponse).results[0]).toHaveProperty('statement')
    expect(answered).toHaveLength(46)
    isHolding = false
    held[0]?.()
    await Promise.all(attests)
    expect(answered.slice(46)).toEqual([200, 200, 200, 200])
  })

  test.each([undefined, '', '55'.repeat(31), '55'.repeat(33), 'AA'.repeat(32), 5])(
    'rejects a nonce of %j',
    async (nonce) => {
      expect((await send(startApp(), { path: enclavePaths.attest, request: { nonce } })).status).toBe(400)
    },
  )
})

describe('callers under a policy', () => {
  const configHash = '66'.repeat(32)
  const measurement = new Uint8Array(48).fill(7)
  const hostData = new Uint8Array(32).fill(8)
  const chipId = new Uint8Array(64).fill(9)
  const policy: CallerPolicy = {
    kind: 'attested',
    report: {
      measurements: [`${toHex(measurement)}:${toHex(hostData)}`],
      minimumTcb: { Milan: { snp: 24 } },
      chips: [toHex(chipId)],
    },
    configHashes: [configHash],
    requireRevocations: false,
  }

  function attestCaller(
    changes: Partial<Omit<SimulatedReportOptions, 'reportData'>> & {
      key?: string
      hash?: string
      revocations?: Uint8Array
    } = {},
  ) {
    const { key = coordinator.key, hash = configHash, revocations, ...guest } = changes
    const reportData = computeSnpReportData({ publicKey: fromHex(key), configHash: fromHex(hash) })
    const { signingKey, reportedTcb } = guest
    const { ek, ask, ark } = simulator.certificates({
      ...(signingKey === 'vlek' ? { signingKey } : { chipId: guest.chipId ?? chipId }),
      ...(reportedTcb === undefined ? {} : { tcb: reportedTcb }),
    })
    const chip = signingKey === 'vlek' ? {} : { chipId }
    return {
      report: toHex(simulator.report({ reportData, measurement, hostData, ...chip, ...guest })),
      certificates: { ek: toHex(ek), ask: toHex(ask), ark: toHex(ark) },
      configHash: hash,
      ...(revocations === undefined ? {} : { revocations: toHex(revocations) }),
    }
  }

  const introduce = (app: ReturnType<typeof startApp>, caller: object) =>
    send(app, { path: enclavePaths.attest, request: { nonce: '55'.repeat(32), caller } })
  const login = (app: ReturnType<typeof startApp>) =>
    send(app, { path: enclavePaths.openSession, request: { idToken: 'alice', loginSecret: '00'.repeat(32) } })

  test('an attested caller may call, and another may not', async () => {
    const app = startApp({ policy })
    expect(await login(app)).toMatchObject({ status: 401, body: { error: { code: 'caller_unknown' } } })
    expect((await introduce(app, attestCaller())).status).toBe(200)
    expect((await login(app)).status).toBe(200)
  })

  test.each([
    ['other code', attestCaller({ measurement: new Uint8Array(48) })],
    ['the same code with other HOST_DATA', attestCaller({ hostData: new Uint8Array(32) })],
    ['another chip', attestCaller({ chipId: new Uint8Array(64).fill(1) })],
    ['a key of the cloud provider, which names no chip', attestCaller({ signingKey: 'vlek' })],
    ['old firmware', attestCaller({ reportedTcb: { bootLoader: 4, tee: 0, snp: 23, microcode: 219 } })],
    [
      'firmware that was old at launch',
      attestCaller({ launchTcb: { bootLoader: 4, tee: 0, snp: 23, microcode: 219 } }),
    ],
    ['memory that was not checked for aliases', attestCaller({ platformInfo: 0x05n })],
    ['a revoked certificate', attestCaller({ revocations: simulator.revocations({ revoked: ['ask'] }) })],
    [
      'a revocation list out of date',
      attestCaller({ revocations: simulator.revocations({ faults: { expired: true } }) }),
    ],
    [
      'a forged revocation list',
      attestCaller({ revocations: simulator.revocations({ faults: { wrongSigner: true } }) }),
    ],
    ['an invalid revocation list', attestCaller({ revocations: new Uint8Array(3) })],
    ['another configuration', attestCaller({ hash: '77'.repeat(32) })],
    ['another key in the report', attestCaller({ key: createTestCoordinator().key })],
    ['a debuggable guest', attestCaller({ policy: 0xb0000n })],
    ['a report cut short', { ...attestCaller(), report: attestCaller().report.slice(2) }],
  ])('%s does not get in', async (_, caller) => {
    const app = startApp({ policy })
    expect(await introduce(app, caller)).toMatchObject({ status: 403, body: { error: { code: 'caller_not_allowed' } } })
    expect((await login(app)).status).toBe(401)
  })

  test('a caller may send AMD’s revocation list, and must if the policy requires it', async () => {
    const revocations = simulator.revocations()
    expect((await introduce(startApp({ policy }), attestCaller({ revocations }))).status).toBe(200)
    const strict = () => startApp({ policy: { ...policy, requireRevocations: true } })
    expect((await introduce(strict(), attestCaller({ revocations }))).status).toBe(200)
    expect(await introduce(strict(), attestCaller())).toMatchObject({
      status: 403,
      body: { error: { code: 'caller_not_allowed' } },
    })
  })

  test('rejects a revocation list that is not hex', async () => {
    const caller = { ...attestCaller(), revocations: 'xyz' }
    expect(await introduce(startApp({ policy }), caller)).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_request' } },
    })
  })

  test('returns no quote to callers that are not attested', async () => {
    const app = startApp({ policy })
    const reply = await send(app, { path: enclavePaths.attest, request: { nonce: '55'.repeat(32) } })
    expect(reply).toMatchObject({ status: 401, body: { error: { code: 'caller_unknown' } } })
  })

  test('an introduction expires after an hour', async () => {
    let now = at.getTime()
    const callers = createCallers({ policy, verifier, clock: { now: () => now } })
    await callers.introduce(coordinator.key, attestCaller())
    callers.assertAllowed(coordinator.key)
    now += 3_600_000
    expect(() => callers.assertAllowed(coordinator.key)).toThrow(expect.objectContaining({ code: 'caller_unknown' }))
  })
})

describe('the root secret', () => {
  const donor: Donor = {
    challenge: () => ({ challenge: '66'.repeat(32) }),
    transfer: () => Promise.reject(new RootSecretError('no secret here')),
  }
  const ask = (app: ReturnType<typeof startApp>, path: string, method = 'POST') =>
    app.handle({ method, path, headers: {}, body: new TextEncoder().encode('{}') })

  test('is not transferred if it came from a file or from dstack', async () => {
    for (const path of Object.values(rootSecretPaths)) expect((await ask(startApp(), path)).status).toBe(404)
  })

  test('can be requested by POST without a coordinator’s signature, in the right form', async () => {
    const app = startApp({ donor })
    expect(await ask(app, rootSecretPaths.challenge)).toEqual({ status: 200, body: donor.challenge() })
    expect((await ask(app, rootSecretPaths.challenge, 'GET')).status).toBe(405)
    expect(await ask(app, rootSecretPaths.transfer)).toMatchObject({ body: { error: { code: 'invalid_request' } } })
    // An enclave with its secret accepts no custodians.
    for (const path of [rootSecretPaths.recovery, rootSecretPaths.share]) {
      expect((await ask(app, path)).status).toBe(404)
    }
  })

  test('is not transferred before the time is known: by the host’s clock, expired evidence could pass', async () => {
    const app = startApp({ donor, time: createTime({ clock, elapsedMs: () => 0 }) })
    for (const path of [rootSecretPaths.challenge, rootSecretPaths.transfer]) {
      expect(await ask(app, path)).toMatchObject({ status: 503, body: { error: { code: 'time_unknown' } } })
    }
  })

  test('is not transferred before sessions can be opened: a failed genesis is repeated with another secret', async () => {
    const aheadMs = 600_000
    let nowMs = at.getTime() + aheadMs
    const time = createTime({ clock: { now: () => nowMs }, elapsedMs: () => 0 })
    nowMs -= aheadMs
    time.learn(nowMs)
    const app = startApp({ donor, time })
    for (const path of [rootSecretPaths.challenge, rootSecretPaths.transfer]) {
      expect(await ask(app, path)).toMatchObject({ status: 503, body: { error: { code: 'time_unknown' } } })
    }
    nowMs += aheadMs
    expect((await ask(app, rootSecretPaths.challenge)).status).toBe(200)
  })

  test('reports a failure of the key worker as internal', async () => {
    const hex = '11'.repeat(32)
    const evidence = { quote: '00', config, collateral: simulator.collateral() }
    const body = new TextEncoder().encode(JSON.stringify({ challenge: hex, nonce: hex, publicKey: hex, evidence }))
    const reply = await startApp({ donor }).handle({
      method: 'POST',
      path: rootSecretPaths.transfer,
      headers: {},
      body,
    })
    expect(reply).toEqual({ status: 500, body: { error: { code: 'internal', message: 'internal error' } } })
  })
})

describe('a log', () => {
  const nonce = '55'.repeat(32)
  const codeOf = async (app: ReturnType<typeof startApp>, path: string, request: object = {}) => {
    const { status, body } = await send(app, { path, request })
    return [status, (body as { error?: { code: string } }).error?.code]
  }

  test('there are no log calls if the settings have no log', async () => {
    const app = startApp()
    for (const path of [enclavePaths.log, enclavePaths.release])
      expect(await codeOf(app, path)).toEqual([404, 'not_found'])
    expect((await send(app, { path: enclavePaths.attest, request: { nonce } })).body).not.toHaveProperty('logs')
  })

  test('only attest, log and release respond until it is open', async () => {
    const { statementLog } = createTestLog()
    const app = startApp({ statementLog })
    for (const path of [enclavePaths.openSession, enclavePaths.vault, enclavePaths.sign])
      expect(await codeOf(app, path)).toEqual([503, 'log_unavailable'])
    const { body } = await send(app, { path: enclavePaths.attest, request: { nonce } })
    expect(body).toMatchObject({
      logs: { own: origins, keys: [{}, {}].map(() => expect.stringMatching('log.example')) },
    })
    expect(await codeOf(app, enclavePaths.release, { bootId: '00'.repeat(16) })).toEqual([404, 'boot_unknown'])
    const unknown = { start: { origin: 'log.example/c', checkpoint: null, hashes: [] } }
    expect(await codeOf(app, enclavePaths.log, unknown)).toEqual([403, 'log_refused'])
    expect(await codeOf(app, enclavePaths.log, { start: 1 })).toEqual([400, 'invalid_request'])
    await open({ statementLog })
    expect(await openSession(app, 'alice')).toHaveProperty('grant')
  })

  test('rejects third parties', async () => {
    const { statementLog } = createTestLog()
    const policy: CallerPolicy = {
      kind: 'attested',
      report: { measurements: [] },
      configHashes: [],
      requireRevocations: false,
    }
    const app = startApp({ statementLog, policy })
    for (const path of [enclavePaths.log, enclavePaths.release])
      expect(await codeOf(app, path)).toEqual([401, 'caller_unknown'])
  })

  test('a stop waits until no statement is left to fetch, and answers attest, log and release meanwhile', async () => {
    const log = createTestLog()
    const app = startApp({ statementLog: log.statementLog })
    await open(log)
    const item = createSignedItem()
    const { checkpoint } = await signStatements(log, [item], { caller: coordinator.key })
    let isStopped = false
    const stopped = app.stop().then(() => (isStopped = true))
    expect(await codeOf(app, enclavePaths.sign)).toEqual([503, 'shutting_down'])
    const boot = { bootId: '03'.repeat(16) }
    const attested = await send(app, { path: enclavePaths.attest, request: { nonce: '55'.repeat(32) } })
    expect(attested).toMatchObject({ status: 200, body: boot })
    const request = { ...boot, ...cosign(checkpoint), leaves: [toLeaf(item)] }
    expect((await send(app, { path: enclavePaths.release, request })).body).toEqual({
      statements: [expect.objectContaining({ statement: expect.anything() })],
      quotes: [{ sequence: 0, quote: 'aa' }],
    })
    expect((await send(app, { path: enclavePaths.log })).body).toMatchObject({ log: { isOpen: true } })
    expect(isStopped).toBe(false)
    await send(app, { path: enclavePaths.release, request: { ...boot, acknowledge: [toLeaf(item)] } })
    await stopped
  })
})

describe('public responses', () => {
  test('health returns mode, version and boot to any caller', async () => {
    const { status, body } = await startApp().handle({
      method: 'GET',
      path: '/health',
      headers: {},
      body: new Uint8Array(),
    })
    expect([status, body]).toEqual([200, { status: 'ok', mode: 'mock', version: '0.0.0', bootId: '03'.repeat(16) }])
  })

  test('returns an unexpected failure as internal, without its text', async () => {
    const app = startApp({ idTokens: { verify: () => Promise.reject(new Error('secret text')) } })
    const reply = await send(app, {
      path: enclavePaths.openSession,
      request: { idToken: 'a', loginSecret: '00'.repeat(32) },
    })
    expect(reply).toEqual({ status: 500, body: { error: { code: 'internal', message: 'internal error' } } })
    expect(lines.join('')).not.toContain('secret text')
  })

  test('logs only the start of a path that a caller chose', async () => {
    const path = `/${'x'.repeat(15_000)}`
    expect(await send(startApp(), { path, request: {} })).toMatchObject({ status: 404 })
    expect(lines.at(-1)).toContain('/xxx')
    expect(lines.at(-1)?.length).toBeLessThan(300)
  })

  test('while stopping, rejects new calls and answers pending ones', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    const app = startApp({
      idTokens: { verify: () => gate.then(() => ({ issuer: 'i', subject: 's', email: null, issuedAt: at.getTime() })) },
    })
    const underWay = send(app, {
      path: enclavePaths.openSession,
      request: { idToken: 'a', loginSecret: '00'.repeat(32) },
    })
    const stopped = app.stop()
    expect((await send(app, { path: enclavePaths.openSession, request: {} })).body).toMatchObject({
      error: { code: 'shutting_down' },
    })
    release()
    expect((await underWay).status).toBe(200)
    await stopped
  })
})

describe('before the body is read', () => {
  const attested: CallerPolicy = {
    kind: 'attested',
    report: { measurements: ['11'.repeat(48)] },
    configHashes: [],
    requireRevocations: false,
  }
  const body = new TextEncoder().encode('{"items":[{}]}')
  const path = enclavePaths.sign
  const sign = (changes: Partial<{ path: string; body: Uint8Array; timeMs: number }> = {}) =>
    coordinator.sign({ path, body, timeMs: at.getTime(), ...changes })
  const admit = (app: ReturnType<typeof startApp>, headers: Record<string, string>, to: string = path) =>
    app.admit({ method: 'POST', path: to, headers })
  const codeOf = (admission: unknown) =>
    (admission as { refusal?: { body: { error: { code: string } } } }).refusal?.body.error.code

  test('rejects unknown callers if callers must be attested, but accepts their introductions', async () => {
    const app = startApp({ policy: attested })
    for (const to of [enclavePaths.sign, enclavePaths.openSession]) {
      expect(codeOf(await admit(app, sign({ path: to }), to))).toBe('caller_unknown')
    }
    expect(await admit(app, sign({ path: enclavePaths.attest }), enclavePaths.attest)).toEqual({ admitted: undefined })
  })

  test.each<[string, Record<string, string>, string]>([
    ['unsigned', {}, 'caller_signature_invalid'],
    [
      'a key and somebody else’s signature',
      { ...sign(), 'countersign-signature': 'ab'.repeat(64) },
      'caller_signature_invalid',
    ],
    ['another body hash', { ...sign(), 'countersign-body': 'ab'.repeat(32) }, 'caller_signature_invalid'],
    ['an invalid body hash', { ...sign(), 'countersign-body': 'x' }, 'caller_signature_invalid'],
    ['signed for another path', sign({ path: enclavePaths.openSession }), 'caller_signature_invalid'],
    ['too old', sign({ timeMs: at.getTime() - 30_001 }), 'caller_clock_skew'],
  ])('%s is refused', async (_, headers, code) => {
    expect(codeOf(await admit(startApp(), headers))).toBe(code)
  })

  test('verifies a signature once, and rejects another body', async () => {
    const app = startApp()
    const headers = sign()
    const admission = await admit(app, headers)
    expect(admission).toEqual({ admitted: { caller: coordinator.key, bodyHash: headers['countersign-body'] } })
    const admitted = (admission as { admitted: { caller: string; bodyHash: string } }).admitted
    expect(await app.handle({ method: 'POST', path, headers, body, admitted })).toMatchObject({ status: 200 })
    const other = new TextEncoder().encode('{"items":[{},{}]}')
    expect(await app.handle({ method: 'POST', path, headers, body: other, admitted })).toMatchObject({
      status: 401,
      body: { error: { code: 'caller_signature_invalid' } },
    })
  })

  test('checks a caller that does not send its body’s hash after reading the body', async () => {
    const { 'countersign-body': _, ...headers } = sign()
    const app = startApp()
    expect(await admit(app, headers)).toEqual({ admitted: undefined })
    expect(await app.handle({ method: 'POST', path, headers, body })).toMatchObject({ status: 200 })
  })
})
