import { createVerifier } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import { decodeLogEntry, encodeLogEntry } from '@countersign/log'
import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import {
  fromHex,
  type Hex,
  hashAuthorization,
  hashMessage,
  type SignItem,
  toEventHash,
  toHex,
} from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSigningEnclave, createTestWalletKey } from '../../test/signingEnclave.ts'
import { createPlatformReader } from '../collateral/platformReader.ts'
import { createSimulatedCollateralStore } from '../collateral/simulatedCollateralStore.ts'
import { CoordinatorError } from '../errors.ts'
import { createManualTime } from '../manualTime.fake.ts'
import { createFakeEntropy, createFakeLog, createFakeRandom, createFakeSelfReport } from '../ports.fake.ts'
import type { Store } from '../ports.ts'
import { createMemoryStore } from '../store/memoryStore.fake.ts'
import { createSignatureChecker, type SignatureChecker } from './checkSignatures.ts'
import { createCommitter } from './commit.ts'
import { addLog, createFakeKeeper, unavailable, witnessKeys } from './logging.fake.ts'
import { createReleaser } from './release.ts'
import { createReleases } from './releases.ts'
import type { Asked, SigningRequest, SigningResult } from './request.ts'
import { type SignDeps, signBatch } from './signBatch.ts'
import { createBatchVerifier } from './verifyBatch.ts'

const NOW = new Date('2026-06-15T12:00:00.000Z')
const alice = createTestWalletKey('alice')
const vaultKey = createTestWalletKey('vault')
const wallets = { alice: '00000000-0000-4000-8000-00000000000a', vault: '00000000-0000-4000-8000-00000000000f' }

let signatures: SignatureChecker
beforeAll(async () => {
  signatures = await createSignatureChecker()
})
afterAll(() => signatures.stop())

function createRequest(asked: Asked): SigningRequest {
  const { keyId, address } = alice
  return { sid: '51'.repeat(32), grant: 'grant', keyId, walletId: wallets.alice, address, asked }
}

function createTransfer(nonce: number, data: Hex = '0x'): SigningRequest {
  const txMetadata = createTx(nonce, { data })
  return createRequest({ kind: 'transaction', digest: toDigest(txMetadata), txMetadata })
}

const message = createRequest({
  kind: 'message',
  content: { message: '0x68656c6c6f' },
  digest: `0x${toHex(hashMessage('0x68656c6c6f'))}`,
})
const authorization = { chainId: 1, address: `0x${'7a'.repeat(20)}`, nonce: 3 } as const

function createVaultTransfer(nonce: number, log: { witnesses: string[]; quorum: number } | null): SigningRequest {
  const rule = { kind: 'transaction', chainIds: 'any', to: 'any', maxValueWei: '1', maxFeeWei: '100000' } as const
  const policy = createPolicy({ version: 1, log, approvers: [], rules: [{ ...rule, approvals: 0 }] })
  const stored = { hash: toHex(hashPolicy(policy)), text: Buffer.from(toPolicyBytes(policy)).toString() }
  const { keyId, address } = vaultKey
  return { ...createTransfer(nonce), keyId, address, walletId: wallets.vault, vault: { policy: stored, rules: policy } }
}

type Service = ReturnType<typeof createService>

/** A coordinator on an enclave with a log: real but for store, entropy, timers, and the walls of the enclave. */
function createService(
  shared: Partial<{
    keeper: ReturnType<typeof createFakeKeeper>
    store: ReturnType<typeof createMemoryStore>
  }> = {},
) {
  const time = createManualTime(NOW)
  const { clock } = time
  const selfReport = createFakeSelfReport()
  const store = shared.store ?? createMemoryStore()
  const signing = createSigningEnclave({ clock, coordinatorKey: selfReport.publicKey, wallets: [alice, vaultKey] })
  const enclave = addLog(signing)
  const keeper = shared.keeper ?? createFakeKeeper()
  const log = createFakeLog()
  const releaser = createReleaser(selfReport)
  const inserted: Parameters<Store['insertSignings']>[0][] = []
  const insertSignings: Store['insertSignings'] = (parameters) => {
    inserted.push(parameters)
    return store.insertSignings(parameters)
  }
  const releases = createReleases({ enclave, schedule: time.schedule, log })
  const verifyBatch = createBatchVerifier({
    verifier: createVerifier({ roots: simulatedRoots() }),
    policy: {},
    collateral: createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock }),
    readPlatform: createPlatformReader(),
    releaser,
  })
  const found: (SigningResult | undefined)[] = []
  const deps: SignDeps = {
    entropy: createFakeEntropy(),
    clock,
    enclave,
    selfReport,
    signatures,
    verifyBatch,
    commit: createCommitter({ store: { insertSignings }, selfReport, clock, random: createFakeRandom(), releaser }),
    receiptVersion: 2,
    log,
    logging: { keeper, releases, schedule: time.schedule, findSigned: async () => found.shift() },
  }
  const sent = { times: 0 }
  /** The answers as they come. */
  function start(requests: readonly SigningRequest[], changes: Partial<SignDeps> = {}) {
    const answers = new Map<SigningRequest, PromiseSettledResult<SigningResult>>()
    const over = signBatch({ ...deps, ...changes }, requests, {
      onSent() {
        sent.times += 1
      },
      answer(request, settled) {
        if (!answers.has(request)) answers.set(request, settled)
      },
    })
    const outcomes = () => requests.map((request) => toOutcome(answers.get(request)))
    return { over, answers, outcomes }
  }
  /** Codes in place of reasons. */
  async function sign(...requests: SigningRequest[]) {
    const { over, outcomes } = start(requests)
    await over
    return outcomes()
  }
  return { time, deps, store, signing, enclave, keeper, releases, log, inserted, found, sent, start, sign, selfReport }
}

function toOutcome(settled: PromiseSettledResult<SigningResult> | undefined) {
  if (settled === undefined) return undefined
  if (settled.status === 'fulfilled') return 'signed'
  return settled.reason instanceof CoordinatorError ? settled.reason.code : settled.reason
}

const leavesOf = ({ keeper }: Service) =>
  keeper.recorded.flatMap(({ appended }) =>
    appended.entries.flatMap((entry) => {
      const decoded = decodeLogEntry(fromHex(entry))
      return decoded.kind === 'boot' ? [] : decoded.leaf
    }),
  )

/** Ends when nothing more happens without somebody else. */
const settleDown = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('signing with a log', () => {
  test('of every kind: written, cosigned, released, stored with its place in the log, acknowledged', async () => {
    const service = createService()
    const { address } = alice
    const requests = [
      createTransfer(0),
      message,
      createRequest({ kind: 'authorization', authorization, digest: `0x${toHex(hashAuthorization(authorization))}` }),
      createRequest({ kind: 'address', digest: toEventHash({ kind: 'address', subject: { address, policy: null } }) }),
    ]
    const { over, answers, outcomes } = service.start(requests)
    await over
    expect(outcomes()).toEqual(['signed', 'signed', 'signed', 'signed'])
    expect(service.keeper.calls).toEqual(['record', 'cosign'])
    const leaves = leavesOf(service)
    expect(service.enclave.asked()).toEqual(leaves)
    const { digest } = createTransfer(0).asked
    expect(service.keeper.recorded[0]?.claims).toHaveLength(3)
    expect(service.keeper.recorded[0]?.claims[0]).toEqual({ walletId: wallets.alice, digest, leaf: leaves[0] })
    expect(JSON.stringify(service.keeper.recorded)).not.toContain(message.asked.digest.slice(2))
    expect(
      service.inserted.flatMap(({ signings }) => signings.map((row) => 'logIndex' in row && row.logIndex)),
    ).toEqual([0, 1, 2, 3])
    for (const { batch } of service.inserted) {
      expect(batch.logKey).toBe(service.enclave.logKey)
      expect(batch.log?.note).toMatch(/^log\.example\/one\n4\n/)
    }
    const opened = answers.get(requests[1] as SigningRequest)
    expect(opened?.status === 'fulfilled' && opened.value.opening?.content).toMatchObject({ kind: 'message' })
    service.time.pass(500)
    await settleDown()
    expect(service.enclave.acknowledged()).toEqual(leaves)
    expect(service.enclave.dropped).toEqual([])
  })

  test('nothing is asked for before witnesses cosigned, and the slot is free meanwhile', async () => {
    const service = createService()
    const cosigning = Promise.withResolvers<void>()
    service.keeper.beforeCosign = () => cosigning.promise
    const { over, outcomes } = service.start([createTransfer(0)])
    await expect.poll(() => service.keeper.calls).toEqual(['record', 'cosign'])
    await settleDown()
    expect(service.sent.times).toBe(1)
    expect([service.enclave.requests, service.inserted, outcomes()]).toEqual([[], [], [undefined]])
    cosigning.resolve()
    await over
    expect(outcomes()).toEqual(['signed'])
  })

  test('no witness is asked before entries and claims are written', async () => {
    const service = createService()
    const writing = Promise.withResolvers<void>()
    service.keeper.beforeRecord = () => writing.promise
    const { over, outcomes } = service.start([createTransfer(0)])
    await settleDown()
    expect(service.keeper.calls).toEqual(['record'])
    writing.resolve()
    await over
    expect(outcomes()).toEqual(['signed'])
  })

  test('the quote is verified while witnesses are asked, and a release begun', async () => {
    const service = createService()
    const cosigning = Promise.withResolvers<void>()
    service.keeper.beforeCosign = () => cosigning.promise
    let isVerified = false
    const verifyBatch: SignDeps['verifyBatch'] = async (...parameters) => {
      const verified = await service.deps.verifyBatch(...parameters)
      await verified.begun?.release
      isVerified = true
      return verified
    }
    const { over, outcomes } = service.start([createTransfer(0)], { verifyBatch })
    await expect.poll(() => isVerified).toBe(true)
    expect(service.enclave.requests).toEqual([])
    cosigning.resolve()
    await over
    expect(outcomes()).toEqual(['signed'])
    // The batch that was released is the one that is stored.
    expect(service.inserted[0]?.batch.release?.coordinatorKey).toBe(service.selfReport.publicKey)
  })

  test('items in several batches that one note covers are asked for in one call, each answered with its own', async () => {
    const service = createService()
    service.signing.limit = 2
    const cosigning = Promise.withResolvers<void>()
    service.keeper.beforeCosign = () => cosigning.promise
    let verified = 0
    const verifyBatch: SignDeps['verifyBatch'] = async (...parameters) => {
      const batch = await service.deps.verifyBatch(...parameters)
      await batch.begun?.release
      verified += 1
      return batch
    }
    const { over, outcomes } = service.start([createTransfer(0), createTransfer(1), createTransfer(2)], { verifyBatch })
    // Otherwise the batch that is verified first is asked for first.
    await expect.poll(() => verified).toBe(2)
    cosigning.resolve()
    await over
    expect(outcomes()).toEqual(['signed', 'signed', 'signed'])
    expect(service.keeper.calls.filter((call) => call === 'record')).toHaveLength(1)
    expect(service.keeper.cosigns.map(({ size }) => size)).toEqual([2, 3])
    expect(service.enclave.requests.flatMap(({ leaves }) => leaves?.length ?? []).toSorted()).toEqual([3])
    expect(service.enclave.asked().toSorted()).toEqual(leavesOf(service).toSorted())
  })

  test('large ones that one note covers are asked for in several calls, so that each answer can be read', async () => {
    const service = createService()
    service.signing.limit = 4
    const large = Array.from({ length: 8 }, (_, nonce) => createTransfer(nonce, `0x${'00'.repeat(128_000)}`))
    expect(await service.sign(...large)).toEqual(Array(8).fill('signed'))
    expect(service.enclave.requests.flatMap(({ leaves }) => leaves?.length ?? [])).toEqual([4, 4])
  })

  test('of a batch with leaves of other coordinators only our own are asked for', async () => {
    const service = createService()
    const foreign = createTransfer(7)
    // As if another coordinator's call had gone into the same batch.
    const signItems: SignDeps['enclave']['signItems'] = async (items) => {
      const { results, ...rest } = await service.enclave.signItems([
        ...items,
        { ...(items[0] as SignItem & { kind: 'transaction' }), ...foreign.asked, kind: 'transaction' } as SignItem,
      ])
      return { ...rest, results: results.slice(0, items.length) }
    }
    const { over, outcomes } = service.start([createTransfer(0)], { enclave: { signItems } })
    await over
    expect(outcomes()).toEqual(['signed'])
    expect(service.enclave.asked()).toEqual(leavesOf(service).slice(0, 1))
    expect(service.keeper.cosigns).toMatchObject([{ size: 1 }])
  })

  test('a policy that the enclave does not know is sent at once, though witnesses keep the others waiting', async () => {
    const service = createService()
    service.enclave.refuse = ({ vault }, policies) =>
      vault !== undefined && policies === undefined ? { error: 'policy_unknown' } : undefined
    const cosigning = Promise.withResolvers<void>()
    service.keeper.beforeCosign = () => cosigning.promise
    const { over, outcomes } = service.start([createTransfer(0), createVaultTransfer(1, null)])
    await expect.poll(() => service.keeper.calls.filter((call) => call === 'cosign')).toHaveLength(2)
    expect(service.sent.times).toBe(1)
    cosigning.resolve()
    await over
    expect(outcomes()).toEqual(['signed', 'signed'])
  })

  test('the second call of the two fails: those of the first are answered as they end', async () => {
    const service = createService()
    service.enclave.refuse = ({ vault }, policies) => {
      if (policies !== undefined) throw new CoordinatorError('enclave_unavailable', 'down')
      return vault && { error: 'policy_unknown' }
    }
    expect(await service.sign(createTransfer(0), createVaultTransfer(1, null))).toEqual([
      'signed',
      'enclave_unavailable',
    ])
  })

  test('a coordinator without witnesses releases nothing, and says why', async () => {
    const service = createService()
    const { over, outcomes } = service.start([createTransfer(0)], { logging: undefined })
    await over
    expect(outcomes()).toEqual(['log_unavailable'])
    expect(service.enclave.requests).toEqual([])
    expect(service.log.lines).toEqual([
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('LOG_WITNESSES') }),
    ])
  })

  test('an enclave without a log signs as ever, and the keeper hears nothing', async () => {
    const service = createService()
    const { signing, selfReport, time } = service
    const plain = createSigningEnclave({ clock: time.clock, coordinatorKey: selfReport.publicKey, wallets: [alice] })
    const { over, outcomes } = service.start([createTransfer(0)], { enclave: plain })
    await over
    expect(outcomes()).toEqual(['signed'])
    expect([service.keeper.calls, signing.calls, time.delays()]).toEqual([[], 0, []])
    expect(service.inserted[0]?.batch).not.toHaveProperty('logKey')
    expect(service.inserted[0]?.signings[0]).not.toHaveProperty('logIndex')
  })
})

describe('whatever fails after the enclave has signed is dropped, given up, and never asked for again', () => {
  const down = new CoordinatorError('database_unavailable', 'the database cannot be reached')
  test.each<[string, string, (service: Service) => void]>([
    [
      'the entries cannot be written',
      'log_unavailable',
      ({ keeper }) => (keeper.beforeRecord = () => Promise.reject(unavailable())),
    ],
    [
      'the database fails while they are',
      'database_unavailable',
      ({ keeper }) => (keeper.beforeRecord = () => Promise.reject(down)),
    ],
    [
      'too few witnesses cosign',
      'log_unavailable',
      ({ keeper }) => (keeper.beforeCosign = () => Promise.reject(unavailable())),
    ],
    [
      'the quote does not hold',
      'attestation_invalid',
      ({ enclave }) => {
        enclave.tamperSigned = ({ batches, ...rest }) => ({
          ...rest,
          batches: batches.map((batch) => ({ ...batch, sequence: batch.sequence + 1 })),
        })
      },
    ],
    [
      'the log is not one of the settings',
      'attestation_invalid',
      ({ enclave }) => {
        enclave.tamperSigned = (answer) => ({
          ...answer,
          log: answer.log && { ...answer.log, origin: 'log.example/two' },
        })
      },
    ],
    [
      'the keys of the logs are missing',
      'attestation_invalid',
      ({ enclave }) => (enclave.tamperSigned = ({ logs: _, ...answer }) => answer),
    ],
  ])('%s: %s', async (_, code, breakIt) => {
    const service = createService()
    breakIt(service)
    expect(await service.sign(createTransfer(0), message)).toEqual([code, code])
    await settleDown()
    const leaves = [...service.enclave.dropped]
    expect(leaves).toHaveLength(2)
    // A message has no claim.
    expect(service.keeper.givenUp).toEqual(leaves.slice(0, 1))
    expect([service.enclave.asked(), service.inserted, service.keeper.claims.size]).toEqual([[], [], 0])
    service.time.pass(60_000)
    await settleDown()
    expect(service.enclave.asked()).toEqual([])
    // The caller may try again at once.
    const again = createService({ keeper: Object.assign(service.keeper, createHooks()), store: service.store })
    expect(await again.sign(createTransfer(0))).toEqual(['signed'])
  })

  const createHooks = () => ({ beforeRecord: async () => {}, beforeCosign: async () => {} })

  test('the enclave cannot be asked: given up, though it may have released', async () => {
    const service = createService()
    service.enclave.beforeRelease = async ({ leaves }) => {
      if (leaves !== undefined) throw unavailable()
    }
    expect(await service.sign(createTransfer(0))).toEqual(['log_unavailable'])
    await settleDown()
    expect(service.enclave.requests).toHaveLength(2)
    expect(service.enclave.dropped).toEqual(service.keeper.givenUp)
    expect(service.inserted).toEqual([])
  })

  test('it cannot be stored: not acknowledged, so that the enclave reports it', async () => {
    const service = createService()
    service.store.isDown = true
    expect(await service.sign(createTransfer(0), createTransfer(1))).toEqual([
      'database_unavailable',
      'database_unavailable',
    ])
    service.time.pass(1_000)
    await settleDown()
    expect(service.keeper.givenUp.toSorted()).toEqual(leavesOf(service).toSorted())
    expect(service.enclave.acknowledged()).toEqual([])
    expect(service.enclave.requests.flatMap(({ acknowledge }) => acknowledge ?? [])).toEqual([])
  })

  test('an earlier signature was stored meanwhile: it is answered, and ours is not acknowledged', async () => {
    const service = createService()
    const [first] = await Promise.all([service.sign(createTransfer(0))])
    service.keeper.claims.clear()
    expect(first).toEqual(['signed'])
    expect(await service.sign(createTransfer(0))).toEqual(['signed'])
    service.time.pass(1_000)
    await settleDown()
    expect(service.enclave.acknowledged()).toEqual(leavesOf(service).slice(0, 1))
  })

  test.each(['beforeRecord', 'beforeCosign'] as const)(
    '%s takes longer than 10 s: told, and what comes later is left',
    async (hook) => {
      const service = createService()
      const late = Promise.withResolvers<void>()
      service.keeper[hook] = () => late.promise
      const { over, outcomes } = service.start([createTransfer(0)])
      await expect.poll(() => service.keeper.calls).toContain(hook === 'beforeRecord' ? 'record' : 'cosign')
      service.time.pass(9_999)
      await settleDown()
      expect(outcomes()).toEqual([undefined])
      service.time.pass(1)
      await over
      expect(outcomes()).toEqual(['log_unavailable'])
      late.resolve()
      await settleDown()
      expect(service.enclave.asked()).toEqual([])
      expect(service.enclave.dropped).toHaveLength(1)
    },
  )

  test('claims that cannot be given up, or not in a second: the caller is told all the same', async () => {
    for (const beforeGiveUp of [() => Promise.reject(down), () => new Promise<void>(() => {})]) {
      const service = createService()
      Object.assign(service.keeper, { beforeGiveUp, beforeCosign: () => Promise.reject(unavailable()) })
      const { over, outcomes } = service.start([createTransfer(0)])
      await expect.poll(() => service.keeper.calls).toContain('giveUp')
      service.time.pass(1_000)
      await over
      expect(outcomes()).toEqual(['log_unavailable'])
      expect(service.log.lines).toContainEqual(expect.objectContaining({ msg: 'Could not give up claims' }))
    }
  })

  test('no timer is left behind', async () => {
    const service = createService()
    await service.sign(createTransfer(0))
    service.time.pass(500)
    service.keeper.beforeCosign = () => Promise.reject(unavailable())
    await service.sign(createTransfer(1))
    expect(service.time.delays()).toEqual([])
  })
})

describe('one that does not hold does not fail the others', () => {
  const both = () => [createTransfer(0), createTransfer(1)]
  const editEntry = (service: Service, edit: (entry: Uint8Array) => Uint8Array) => {
    service.enclave.tamperSigned = ({ log, ...answer }) => ({
      ...answer,
      log: log && { ...log, entries: log.entries.map((entry, at) => (at === 1 ? toHex(edit(fromHex(entry))) : entry)) },
    })
  }
  const editStatement = (service: Service, edit: (statement: never) => unknown) => {
    service.enclave.tamperReleased = ({ statements }) => ({
      statements: statements.map((one, at) => (at === 1 ? (edit(one as never) as never) : one)),
    })
  }
  type Released = { statement: { signedAt: string }; subject: Record<string, unknown> }
  test.each<[string, string, (service: Service) => void]>([
    ['its statement was erased', 'log_unavailable', (service) => editStatement(service, () => null)],
    [
      'its statement says another time than the log',
      'attestation_invalid',
      (service) => {
        let index = 0
        service.signing.stateV2 = (signed) => signed
        editEntry(service, (entry) => {
          index += 1
          const decoded = decodeLogEntry(entry)
          return index === 1 && decoded.kind === 'signature'
            ? encodeLogEntry({ ...decoded, timeMs: decoded.timeMs + 1 })
            : entry
        })
      },
    ],
    [
      'its statement is another than its leaf',
      'attestation_invalid',
      (service) =>
        editStatement(service, (one: Released) => ({
          ...one,
          statement: { ...one.statement, signedAt: new Date(NOW.getTime() + 1).toISOString() },
        })),
    ],
    [
      'its signature is of another',
      'attestation_invalid',
      (service) =>
        editStatement(service, (one: Released) => ({
          ...one,
          subject: { ...one.subject, signature: `0x${'11'.repeat(65)}` },
        })),
    ],
    [
      'its entry is of another kind',
      'attestation_invalid',
      (service) => editEntry(service, (entry) => entry.with(0, 2)),
    ],
    ['its entry is none', 'attestation_invalid', (service) => editEntry(service, (entry) => entry.with(0, 9))],
    [
      'its entry is of another key',
      'attestation_invalid',
      (service) => editEntry(service, (entry) => entry.with(1, 0xee)),
    ],
    [
      'its entry is of another leaf',
      'attestation_invalid',
      (service) => editEntry(service, (entry) => entry.with(17, 0xee)),
    ],
  ])('%s: %s', async (_, code, breakIt) => {
    const service = createService()
    breakIt(service)
    expect(await service.sign(...both())).toEqual(['signed', code])
    service.time.pass(500)
    await settleDown()
    const [good, bad] = [...service.enclave.held.keys(), ...service.enclave.dropped]
    expect(service.enclave.acknowledged()).toEqual([good])
    expect(service.keeper.givenUp).toEqual([bad])
    expect(service.store.rows.signed.size).toBe(1)
  })
})

describe('a statement that is dated by a wrong clock is dropped, not given away', () => {
  test.each([
    ['5 s ahead', 5_000, 'signed'],
    ['more than that ahead', 5_001, 'attestation_invalid'],
    ['5 s behind', -5_000, 'signed'],
    ['more than that behind', -5_001, 'attestation_invalid'],
  ])('%s', async (_, ms, outcome) => {
    const service = createService()
    service.signing.stateV2 = (signed) => {
      const signedAt = new Date(NOW.getTime() + ms).toISOString()
      return signed.opening === undefined ? signed : { ...signed, statement: { ...signed.statement, signedAt } }
    }
    expect(await service.sign(createTransfer(0), message)).toEqual(['signed', outcome])
    await settleDown()
    const [transfer, dated] = leavesOf(service)
    const isSigned = outcome === 'signed'
    expect(service.enclave.asked()).toEqual(isSigned ? [transfer, dated] : [transfer])
    expect(service.enclave.dropped).toEqual(isSigned ? [] : [dated])
  })
})

describe('two who ask for the same digest', () => {
  const winner: SigningResult = { signature: `0x${'77'.repeat(65)}`, slug: 'AAAAAAAAAAAAAAAAAAAAAA' }

  test('the one who was later gets the other’s signature, once it is stored; its own is dropped', async () => {
    const service = createService()
    const { walletId, asked } = createTransfer(0)
    service.keeper.claims.set(`${walletId} ${asked.digest}`, 'another leaf')
    service.found.push(undefined, undefined, winner)
    const { over, answers, outcomes } = service.start([createTransfer(0), createTransfer(1)])
    await expect.poll(() => outcomes()[1]).toBe('signed')
    for (let poll = 0; poll < 2; poll++) {
      await settleDown()
      service.time.pass(50)
    }
    await over
    expect([...answers.values()].map((one) => one.status === 'fulfilled' && one.value.slug)).toContain(winner.slug)
    const [lost, own] = leavesOf(service)
    expect(service.enclave.asked()).toEqual([own])
    expect(service.enclave.dropped).toEqual([lost])
    expect(service.keeper.givenUp).toEqual([])
  })

  test('if none is stored within 3 s it is told', async () => {
    const service = createService()
    const { walletId, asked } = createTransfer(0)
    service.keeper.claims.set(`${walletId} ${asked.digest}`, 'another leaf')
    const { over, outcomes } = service.start([createTransfer(0)])
    for (let poll = 0; poll < 60; poll++) {
      await settleDown()
      service.time.pass(50)
    }
    await over
    expect(outcomes()).toEqual(['log_unavailable'])
    expect(service.enclave.asked()).toEqual([])
  })

  test('the same where the database does not answer', async () => {
    const service = createService()
    const { walletId, asked } = createTransfer(0)
    service.keeper.claims.set(`${walletId} ${asked.digest}`, 'another leaf')
    if (service.deps.logging) service.deps.logging.findSigned = () => new Promise(() => {})
    const { over, outcomes } = service.start([createTransfer(0)])
    await settleDown()
    service.time.pass(3_000)
    await over
    expect(outcomes()).toEqual(['log_unavailable'])
  })

  test('through two coordinators at once: one signature is stored, and both get it', async () => {
    const first = createService()
    const second = createService({ keeper: first.keeper, store: first.store })
    const request = createTransfer(0)
    for (const { deps } of [first, second]) {
      const { rows } = first.store
      Object.assign(deps.logging ?? {}, {
        findSigned: async () => rows.signed.get(`${request.walletId}/${request.asked.digest}`),
      })
    }
    const runs = [first, second].map(({ start }) => start([request]))
    await expect
      .poll(() => {
        for (const { time } of [first, second]) time.pass(50)
        return runs.flatMap(({ outcomes }) => outcomes())
      })
      .toEqual(['signed', 'signed'])
    expect(first.store.rows.proofs.size).toBe(1)
    expect(first.enclave.asked().length + second.enclave.asked().length).toBe(1)
    expect(
      new Set(
        runs.flatMap(({ answers }) =>
          [...answers.values()].map((one) => JSON.stringify('value' in one && one.value.slug)),
        ),
      ).size,
    ).toBe(1)
  })
})

describe('a vault that asks for witnesses of its own', () => {
  const need = { witnesses: witnessKeys.slice(0, 1), quorum: 1 }

  test('waits for them; who needs no such witness does not', async () => {
    const service = createService()
    const missing = Promise.withResolvers<void>()
    service.keeper.beforeCosign = async ({ needs }) => {
      if (needs !== undefined) await missing.promise
    }
    const requests = [createTransfer(0), createVaultTransfer(1, need), createVaultTransfer(2, null)]
    const { over, outcomes } = service.start(requests)
    await expect.poll(() => outcomes()).toEqual(['signed', undefined, 'signed'])
    expect(service.keeper.cosigns.map(({ needs }) => needs)).toEqual([undefined, [need]])
    expect(service.enclave.asked()).toHaveLength(2)
    missing.resolve()
    await over
    expect(outcomes()).toEqual(['signed', 'signed', 'signed'])
  })

  test('fails alone when they do not cosign', async () => {
    const service = createService()
    service.keeper.beforeCosign = async ({ needs }) => {
      if (needs !== undefined) throw unavailable()
    }
    expect(await service.sign(createVaultTransfer(0, need), createTransfer(1))).toEqual(['log_unavailable', 'signed'])
    await settleDown()
    expect(service.enclave.dropped).toEqual(leavesOf(service).slice(0, 1))
  })
})
