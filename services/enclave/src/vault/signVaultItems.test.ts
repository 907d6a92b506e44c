import { createSimulator } from '@countersign/attestation/simulator'
import { createSimulatedQuoteSource } from '@countersign/evidence'
import { createPolicy, hashPolicy, type Policy, toPolicyBytes } from '@countersign/policy'
import {
  createEnclaveSettings,
  type EntropySetting,
  hashUnsignedTransaction,
  type LogSetting,
  type SignItem,
  toHex,
  type VaultResponse,
} from '@countersign/protocol'
import { createLog } from '@countersign/service'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { budgeted, full, limited, scheduled } from '../../../../packages/policy/test/policies.ts'
import { beacon, createRound } from '../../test/beacon.ts'
import { createKnownTime } from '../../test/time/time.ts'
import { approve, findRule, large, payment } from '../../test/vault.ts'
import { createWitness, satelliteKey } from '../../test/witness.ts'
import { toSidHash } from '../grant/grant.ts'
import { toOwner } from '../keys/deriveKey.ts'
import { createKeyWorker, type KeyWorker } from '../keys/keyWorker.ts'
import { createBatcher } from '../sign/batch.ts'
import { createSamples } from '../sign/samples.ts'
import { signItems } from '../sign/signItems.ts'
import { createTime, type Time } from '../time/time.ts'
import { deriveVault } from './deriveVault.ts'
import { createPolicyTexts } from './policyMemory.ts'

/* Vaults across the key worker's thread: policy texts, samples, and the call that derives. */

const NOW = Date.UTC(2027, 0, 1, 12)
const configHash = new Uint8Array(32).fill(0xcc)
const sid = 'ab'.repeat(32)
const coordinatorKey = 'cd'.repeat(32)
const sources: EntropySetting[] = [
  { kind: 'satellite', key: satelliteKey },
  { kind: 'drand', ...beacon },
]
const simulator = createSimulator({ at: new Date(NOW) })
const toText = (policy: Policy) => new TextDecoder().decode(toPolicyBytes(policy))
const timed = createPolicy({
  ...scheduled,
  time: [
    { kind: 'satellite', key: satelliteKey },
    { kind: 'drand', ...beacon },
  ],
})

/** The policies of the vaults, by hash. */
const known = new Map([limited, full, timed, scheduled].map((policy) => [toHex(hashPolicy(policy)), policy]))

/** Two enclaves with one secret, and a user's session with the first. */
let workers: KeyWorker[]
let session: { sid: string; grant: string; keyId: string }

beforeAll(async () => {
  const create = () => createKeyWorker({ rootSecret: new Uint8Array(32).fill(7), configHash, implementations: [] })
  workers = [await create(), await create()]
  const identity = { issuer: 'https://issuer.example', subject: 'alice', email: null }
  const granted = { owner: toOwner(identity), identity, clientKey: null, sidHash: toSidHash(sid), exp: NOW + 60_000 }
  const opened = await workers[0]?.openGrant(granted)
  session = { sid, grant: opened?.grant ?? '', keyId: opened?.keyId ?? '' }
})
afterAll(() => Promise.all(workers.map((worker) => worker.close())))

function startEnclave({
  worker = 0,
  entropy = sources,
  at = NOW,
  time = createKnownTime({ now: () => at }),
  log: setting = null,
  chainIds,
}: {
  worker?: number
  entropy?: typeof sources
  at?: number
  time?: Time
  log?: LogSetting | null
  chainIds?: readonly number[]
} = {}) {
  const quoteSource = createSimulatedQuoteSource({ simulator, latencyMs: 0 })
  const log = createLog(
    () => undefined,
    () => NOW,
  )
  const deps = {
    keyWorker: workers[worker] as KeyWorker,
    batcher: createBatcher({ quoteSource, bootId: new Uint8Array(16), configHash, limit: 256, log }),
    samples: createSamples({ sources: entropy, time }),
    time,
    policyTexts: createPolicyTexts(),
    settings: createEnclaveSettings(entropy, [], setting),
    chainIds,
  }
  return {
    deps,
    derive: (policy: string, changes: object = {}) =>
      deriveVault(deps, { sid, grant: session.grant, policy, ...changes }),
    async sign(items: SignItem[], policies?: string[]) {
      const { results } = await signItems(deps, { items, policies, coordinatorKey })
      return results.map((result) => ('error' in result ? result.error : result.statement))
    },
  }
}

const derive = (policy: Policy) => startEnclave().derive(toText(policy))
const toPayment = (
  { keyId, policy }: VaultResponse,
  nonce = 0,
  witness = createWitness(NOW) as SignItem['witness'],
): SignItem => {
  const txMetadata = { ...payment, nonce }
  const digest = `0x${toHex(hashUnsignedTransaction(txMetadata))}` as const
  const wanted = { kind: 'transaction', statementVersion: 2, digest, txMetadata } as const
  const rule = findRule(known.get(policy) ?? limited, txMetadata)
  return { ...session, keyId, witness, vault: { policy, rule }, ...wanted }
}

test('requests an unknown policy before it uses the sample, and this enclave remembers the text', async () => {
  const vault = await derive(limited)
  const { sign } = startEnclave()
  const items: SignItem[] = [
    toPayment(vault),
    { ...session, keyId: vault.keyId, witness: createWitness(NOW), vault: { policy: vault.policy }, kind: 'address' },
  ]
  expect(await sign(items)).toEqual(['policy_unknown', 'policy_unknown'])
  expect(await sign(items, [toText(full)])).toEqual(['policy_unknown', 'policy_unknown'])
  const stated = { address: vault.address, keyId: vault.keyId, policy: vault.policy }
  expect(await sign(items, [toText(limited)])).toMatchObject([
    { ...stated, kind: 'transaction' },
    { ...stated, kind: 'address' },
  ])
  expect(await sign([toPayment(vault, 1)])).toMatchObject([stated])
  // A statement of an address needs a separate sample each time.
  expect(await sign(items)).toMatchObject([stated, 'entropy_used'])
})

test('a derived vault needs no text again', async () => {
  const enclave = startEnclave()
  const vault = await enclave.derive(toText(limited))
  expect(await enclave.sign([toPayment(vault)])).toMatchObject([{ address: vault.address }])
})

test('two enclaves with one secret derive one vault, and another policy derives another', async () => {
  const [one, other] = await Promise.all([0, 1].map((worker) => startEnclave({ worker }).derive(toText(limited))))
  expect(one).toEqual(other)
  expect(one).toMatchObject({
    policy: toHex(hashPolicy(limited)),
    publicKey: expect.stringMatching(/^04[0-9a-f]{128}$/),
  })
  const changed = await derive(createPolicy({ ...limited, approvers: full.approvers }))
  expect([changed.address === one?.address, changed.keyId === one?.keyId]).toEqual([false, false])
})

test('a schedule uses the time of the sample, from a source in both settings and policy', async () => {
  const enclave = startEnclave()
  const vault = await enclave.derive(toText(timed))
  // Ten per day, starting on that day.
  for (const witness of [createWitness(NOW), createRound(NOW)]) {
    expect(await enclave.sign([toPayment(vault, 9, witness)])).toMatchObject([{ address: vault.address }])
    expect(await enclave.sign([toPayment(vault, 10, witness)])).toEqual([
      witness.source === 'simulated-satellite' ? 'entropy_used' : 'policy_refused',
    ])
  }
  expect(await enclave.sign([toPayment(vault, 10)])).toEqual(['policy_refused'])
  const unsigned = { ...createWitness(NOW), publicKey: '00'.repeat(32), signatureHex: '00'.repeat(64) }
  const unsafe = startEnclave({ entropy: [...sources, { kind: 'unsigned' }] })
  expect(await unsafe.sign([toPayment(vault, 0, unsigned)], [toText(timed)])).toEqual(['policy_refused'])
})

test('derives an existing vault’s key under any settings, but still needs a session', async () => {
  const text = toText(limited)
  const { derive } = startEnclave({ chainIds: [11155111] })
  await expect(derive(text)).rejects.toMatchObject({ code: 'policy_not_supported' })
  const known = { isKnown: true }
  expect(await derive(text, known)).toEqual(await startEnclave().derive(text))
  await expect(derive(text, { ...known, grant: '' })).rejects.toMatchObject({ code: 'grant_invalid' })
})

test('derives no vault', async () => {
  const { derive, deps } = startEnclave()
  const text = toText(limited)
  const codeOf = (calling: Promise<unknown>) =>
    calling.then(
      () => 'derived',
      ({ code }) => code,
    )
  expect(await codeOf(derive(text))).toBe('derived')
  expect(await codeOf(derive(text, { sid: 'ac'.repeat(32) }))).toBe('grant_invalid')
  expect(await codeOf(derive(text, { grant: '' }))).toBe('grant_invalid')
  expect(await codeOf(startEnclave({ at: NOW + 60_000 }).derive(text))).toBe('session_expired')
  for (const wrong of ['', '{}', ` ${text}`, text.replace('"version":1', '"version":2'), 'x'.repeat(20_000)]) {
    expect(await codeOf(derive(wrong))).toBe('invalid_policy')
  }
  // The session is checked first, because parsing a policy takes longer.
  expect(await codeOf(derive('{}', { grant: '' }))).toBe('grant_invalid')
  const toSource = (at: number) => ({ kind: 'drand' as const, ...beacon, chainHash: `0${at}`.repeat(32) })
  const many = Array.from({ length: 9 }, (_, at) => toSource(at))
  expect(await codeOf(derive(toText(createPolicy({ ...timed, time: many }))))).toBe('invalid_policy')
  const some = createPolicy({ ...timed, time: [...many.slice(1, 8), { kind: 'drand', ...beacon }] })
  expect(await codeOf(derive(toText(some)))).toBe('derived')
  // There is no log yet, and no sample of these sources could be verified here.
  expect(await codeOf(derive(toText(full)))).toBe('policy_not_supported')
  const log = (witnesses: readonly string[]) => ({ origins: ['log.example/a'], witnesses, quorum: witnesses.length })
  const [one = '', two = ''] = full.log?.witnesses ?? []
  expect(await codeOf(startEnclave({ log: log([one]) }).derive(toText(full)))).toBe('policy_not_supported')
  expect(await startEnclave({ log: log([one, two]) }).derive(toText(full))).toHaveProperty('address')
  // A budget needs its own log, and all its witnesses, even if fewer are its quorum.
  const { origin = '', witnesses: named = [] } = budgeted.log ?? {}
  const tryCounting = (setting: Partial<LogSetting>) =>
    codeOf(startEnclave({ log: { ...log(named), origins: [origin], ...setting } }).derive(toText(budgeted)))
  expect(await tryCounting({})).toBe('derived')
  expect(await tryCounting({ origins: ['log.example/a'] })).toBe('policy_not_supported')
  expect(await tryCounting({ witnesses: named.slice(1) })).toBe('policy_not_supported')
  expect(await codeOf(derive(toText(scheduled)))).toBe('policy_not_supported')
  // Its rules are only for the first chain.
  expect(await codeOf(startEnclave({ chainIds: [11155111] }).derive(text))).toBe('policy_not_supported')
  expect(await codeOf(startEnclave({ chainIds: [1, 11155111] }).derive(text))).toBe('derived')
  const request = { sid, grant: session.grant, policy: text }
  const unknown = { ...deps, time: createTime({ clock: { now: () => NOW }, elapsedMs: () => 0 }) }
  expect(await codeOf(deriveVault(unknown, request))).toBe('time_unknown')
})

test('an approval expires while the clock is stopped', async () => {
  let elapsedMs = 0
  const time = createTime({ clock: { now: () => NOW }, elapsedMs: () => elapsedMs })
  time.learn(NOW)
  const vault = await derive(limited)
  const { sign } = startEnclave({ time })
  const digest = `0x${toHex(hashUnsignedTransaction(large))}` as const
  const of = { policy: limited, hash: vault.policy, address: vault.address }
  const approvals = [approve(of, { digest, expiresMs: NOW + 20_000 })]
  const vaultUse = { policy: vault.policy, rule: findRule(limited, large), approvals }
  const use = { ...toPayment(vault), digest, txMetadata: large, vault: vaultUse } as SignItem
  const signLarge = () => sign([{ ...use, witness: createWitness(NOW) }], [toText(limited)])
  expect(await signLarge()).toEqual([expect.objectContaining({ kind: 'transaction' })])
  elapsedMs = 30_000
  expect(await signLarge()).toEqual(['approval_invalid'])
})
