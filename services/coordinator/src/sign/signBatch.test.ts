import { createVerifier, vendorRoots } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import {
  fromHex,
  hashMessage,
  MAX_BLOCK_BYTES,
  recoverPublicKey,
  type SignedBatch,
  type SignItemError,
  type Statement,
  type TxMetadata,
  toAddress,
  toHex,
} from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createSigningEnclave,
  createTestWalletKey,
  type SignedItem,
  type SignedItemV2,
  signTestDigest,
} from '../../test/signingEnclave.ts'
import { createPlatformReader } from '../collateral/platformReader.ts'
import { createSimulatedCollateralStore } from '../collateral/simulatedCollateralStore.ts'
import { CoordinatorError } from '../errors.ts'
import {
  createFakeClock,
  createFakeEntropy,
  createFakeLog,
  createFakeRandom,
  createFakeSelfReport,
  createFakeWitness,
} from '../ports.fake.ts'
import { createMemoryStore } from '../store/memoryStore.fake.ts'
import { createSignatureChecker, type SignatureChecker } from './checkSignatures.ts'
import { type CommitDeps, createCommitter } from './commit.ts'
import { createReleaser } from './release.ts'
import type { SigningRequest, SigningResult } from './request.ts'
import { type SignDeps, signBatch } from './signBatch.ts'
import { type BatchVerifierDeps, createBatchVerifier } from './verifyBatch.ts'

const DAY_MS = 86_400_000
const alice = createTestWalletKey('alice')
const bob = createTestWalletKey('bob')
const walletIds = new Map([
  [alice.keyId, '00000000-0000-4000-8000-00000000000a'],
  [bob.keyId, '00000000-0000-4000-8000-00000000000b'],
])

let signatures: SignatureChecker
beforeAll(async () => {
  signatures = await createSignatureChecker()
})
afterAll(() => signatures.stop())

function createRequest(
  nonce: number,
  wallet = alice,
): SigningRequest & { asked: { kind: 'transaction'; txMetadata: TxMetadata } } {
  const txMetadata = createTx(nonce)
  return {
    sid: '51'.repeat(32),
    grant: 'grant',
    keyId: wallet.keyId,
    walletId: walletIds.get(wallet.keyId) ?? '',
    address: wallet.address,
    asked: { kind: 'transaction', digest: toDigest(txMetadata), txMetadata },
  }
}

type Parts = Pick<SignDeps, 'entropy'> & BatchVerifierDeps & CommitDeps

/** Everything that signing needs, real but for store, entropy and the walls of the enclave. */
function createService() {
  const clock = createFakeClock()
  const selfReport = createFakeSelfReport()
  const store = createMemoryStore()
  const entropy = createFakeEntropy()
  const enclave = createSigningEnclave({ clock, coordinatorKey: selfReport.publicKey, wallets: [alice, bob] })
  const parts: Parts = {
    store,
    entropy,
    collateral: createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock }),
    selfReport,
    verifier: createVerifier({ roots: simulatedRoots() }),
    policy: {},
    readPlatform: createPlatformReader(),
    clock,
    random: createFakeRandom(),
    releaser: createReleaser(selfReport),
  }
  /** With some parts replaced by others. */
  const toDeps = (changes: Partial<Parts> = {}): SignDeps => {
    const all = { ...parts, ...changes }
    const { entropy, clock } = all
    return {
      entropy,
      clock,
      enclave,
      selfReport,
      signatures,
      verifyBatch: createBatchVerifier(all),
      commit: createCommitter(all),
      receiptVersion: 1,
      log: createFakeLog(),
    }
  }
  const sent = { times: 0 }
  const onSent = () => {
    sent.times += 1
  }
  const sign = (...requests: SigningRequest[]) => collect(toDeps(), requests, onSent)
  /** Codes in place of reasons. */
  const outcomes = async (...requests: SigningRequest[]) =>
    (await sign(...requests)).map((settled) =>
      settled?.status === 'fulfilled'
        ? 'signed'
        : settled?.reason instanceof CoordinatorError
          ? settled.reason.code
          : settled?.reason,
    )
  return { parts, toDeps, clock, selfReport, store, entropy, enclave, sent, sign, outcomes }
}

/** The answers, in the order of the requests. */
async function collect(deps: SignDeps, requests: SigningRequest[], onSent = () => {}) {
  const answers = new Map<SigningRequest, PromiseSettledResult<SigningResult>>()
  await signBatch(deps, requests, {
    onSent,
    answer(request, settled) {
      if (!answers.has(request)) answers.set(request, settled)
    },
  })
  return requests.map((request) => answers.get(request))
}

type Service = ReturnType<typeof createService>

describe('signing', () => {
  test('answers signatures of the wallets and slugs of their proofs', async () => {
    const { sign, store, sent } = createService()
    const requests = [createRequest(0), createRequest(1), createRequest(0, bob)]
    const settled = await sign(...requests)
    for (const [index, answer] of settled.entries()) {
      if (answer?.status !== 'fulfilled') throw answer?.reason
      const { asked, address } = requests[index] as SigningRequest
      const signature = fromHex((answer.value.signature ?? '').slice(2))
      expect(toAddress(recoverPublicKey(fromHex(asked.digest.slice(2)), signature))).toBe(address)
      expect(answer.value.slug).toMatch(/^[\w-]{22}$/)
      expect(store.rows.proofs.has(answer.value.slug)).toBe(true)
    }
    expect(sent.times).toBe(1)
  })

  test('a slug is 128 random bits, independent of the signed content', async () => {
    const signWith = async (seed: string, nonce: number) => {
      const { toDeps } = createService()
      const drawn: Uint8Array[] = []
      const source = createFakeRandom(seed)
      const random = (length: number) => {
        const bytes = source(length)
        drawn.push(bytes)
        return bytes
      }
      const [settled] = await collect(toDeps({ random }), [createRequest(nonce)])
      if (settled?.status !== 'fulfilled') throw settled?.reason
      expect(drawn).toHaveLength(1)
      expect(drawn[0]).toHaveLength(16)
      expect(settled.value.slug).toBe(Buffer.from(drawn[0] as Uint8Array).toString('base64url'))
      return settled.value
    }
    const [one, again, other] = [await signWith('a', 0), await signWith('b', 0), await signWith('a', 1)]
    // One transaction with two random values, and two transactions with one random value.
    expect([again.signature === one.signature, again.slug === one.slug]).toEqual([true, false])
    expect([other.signature === one.signature, other.slug === one.slug]).toEqual([false, true])
  })

  test('what was signed meanwhile is answered as it was signed first', async () => {
    const { sign, store } = createService()
    const [first] = await sign(createRequest(0))
    expect(await sign(createRequest(0), createRequest(1))).toEqual([first, expect.anything()])
    expect(store.rows.signed.size).toBe(2)
  })

  test('a large batch is stored and answered in parts, the first before the last', async () => {
    const service = createService()
    const requests: SigningRequest[] = Array.from({ length: 70 }, (_, index) => createRequest(index))
    const order: string[] = []
    const insertSignings: Service['store']['insertSignings'] = async (parameters) => {
      const signed = await service.store.insertSignings(parameters)
      order.push(`stored ${parameters.signings.length}`)
      return signed
    }
    // On a busy machine all parts can be checked before the quote is verified: here the others wait for the first.
    const firstAnswer = Promise.withResolvers<void>()
    let parts = 0
    const check: SignDeps['signatures']['check'] = async (claims) => {
      if (parts++ > 0) await firstAnswer.promise
      return signatures.check(claims)
    }
    const deps = { ...service.toDeps({ store: { insertSignings } }), signatures: { ...signatures, check } }
    await signBatch(deps, requests, {
      onSent() {},
      answer(request, { status }) {
        order.push(`${status} ${requests.indexOf(request)}`)
        firstAnswer.resolve()
      },
    })
    expect(order.filter((line) => line.startsWith('fulfilled'))).toHaveLength(70)
    expect(order.findIndex((line) => line.startsWith('stored'))).toBe(0)
    expect(order.indexOf('fulfilled 0')).toBeLessThan(order.findLastIndex((line) => line.startsWith('stored')))
  })

  test('items that fell into two batches are both committed', async () => {
    const service = createService()
    service.enclave.limit = 2
    const batches: number[] = []
    const insertSignings: Service['store']['insertSignings'] = (parameters) => {
      batches.push(parameters.batch.sequence)
      return service.store.insertSignings(parameters)
    }
    const deps = service.toDeps({ store: { insertSignings } })
    const settled = await collect(deps, [createRequest(0), createRequest(1), createRequest(2)])
    expect(settled.map((one) => one?.status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(batches.sort()).toEqual([0, 1])
    expect(service.store.rows.signed.size).toBe(3)
  })

  test('the committed winner is answered when another coordinator was first', async () => {
    const service = createService()
    const winner = {
      walletId: createRequest(0).walletId,
      digest: createRequest(0).asked.digest,
      signature: `0x${'77'.repeat(65)}` as const,
      slug: 'AAAAAAAAAAAAAAAAAAAAAA',
    }
    const store = { insertSignings: async () => [winner] }
    const [settled] = await collect(service.toDeps({ store }), [createRequest(0)])
    expect(settled).toEqual({ status: 'fulfilled', value: { signature: winner.signature, slug: winner.slug } })
  })
})

test('an earlier signature that cannot be read fails who asked for it, and nobody whose own is stored', async () => {
  const service = createService()
  const insertSignings: Service['store']['insertSignings'] = async (parameters) =>
    (await service.store.insertSignings(parameters)).slice(1)
  const settled = await collect(service.toDeps({ store: { insertSignings } }), [createRequest(0), createRequest(1)])
  expect(settled[0]).toMatchObject({ status: 'rejected', reason: { code: 'database_unavailable' } })
  expect(settled[1]?.status).toBe('fulfilled')
})

describe('evidence that does not hold: nothing is stored, and nothing answered', () => {
  const editItem = (service: Service, edit: (result: SignedItem, index: number) => SignedItem | SignItemError) => {
    service.enclave.tamper = (answer) => ({
      ...answer,
      results: answer.results.map((result, index) => ('error' in result ? result : edit(result as SignedItem, index))),
    })
  }
  const editBatch = (service: Service, edit: (batch: SignedBatch) => Partial<SignedBatch>) => {
    service.enclave.tamper = (answer) => ({
      ...answer,
      batches: answer.batches.map((batch) => ({ ...batch, ...edit(batch) })),
    })
  }
  /** Statements that the quote covers, as a lying enclave would have them. */
  const state = (service: Service, changes: Partial<Statement>) => {
    service.enclave.state = (statement) => ({ ...statement, ...changes })
  }

  const shiftClock = (service: Service, ms: number) => {
    const signedAt = new Date(service.clock.now() + ms).toISOString()
    // The sample is of the same time: only the clocks of enclave and coordinator differ.
    shiftSamples(service, ms)
    state(service, { signedAt })
  }
  const shiftSamples = ({ parts, clock, entropy }: Service, ms: number) => {
    const timestamp = new Date(clock.now() + ms).toISOString()
    parts.entropy = { take: async (count) => (await entropy.take(count)).map((one) => ({ ...one, timestamp })) }
  }

  test('clocks that differ by 5 s, and samples up to 65 s old, are within what verifiers accept', async () => {
    for (const [clockMs, sampleMs] of [
      [-5_000, 0],
      [5_000, 0],
      [0, 5_000],
      [0, -65_000],
    ] as const) {
      const service = createService()
      state(service, { signedAt: new Date(service.clock.now() + clockMs).toISOString() })
      shiftSamples(service, sampleMs)
      expect(await service.outcomes(createRequest(0))).toEqual(['signed'])
    }
  })

  test.each<[string, string, (service: Service) => unknown]>([
    [
      'the quote of another batch',
      'attestation_invalid',
      async (service) => {
        const { sid, grant, keyId, asked } = createRequest(9)
        const wanted = { ...asked, statementVersion: 1 } as const
        const item = { ...wanted, sid, grant, keyId, witness: createFakeWitness(9) }
        const [other] = (await service.enclave.signItems([item])).batches
        editBatch(service, () => ({ quote: other?.quote ?? '' }))
      },
    ],
    [
      'a leaf more',
      'attestation_invalid',
      (service) => editBatch(service, ({ leaves }) => ({ leaves: [...leaves, '00'.repeat(32)] })),
    ],
    ['another number', 'attestation_invalid', (service) => editBatch(service, () => ({ sequence: 7 }))],
    ['no quote at all', 'attestation_invalid', (service) => editBatch(service, () => ({ quote: '00' }))],
    [
      'a debug TD',
      'attestation_invalid',
      ({ enclave }) => {
        enclave.quote = { tdAttributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) }
      },
    ],
    [
      'an old platform',
      'attestation_invalid',
      ({ enclave }) => {
        enclave.quote = { status: 'OutOfDate' }
      },
    ],
    [
      'a platform without collateral',
      'collateral_stale',
      ({ enclave }) => {
        enclave.quote = { faults: { pckOtherFmspc: true } }
      },
    ],
    [
      'another configuration than the policy’s',
      'attestation_invalid',
      ({ parts }) => {
        parts.policy = { configHashes: ['00'.repeat(32)] }
      },
    ],
    [
      'other code than the policy’s',
      'attestation_invalid',
      ({ parts }) => {
        parts.policy = { measurements: [{ mrTd: '00'.repeat(48) }] }
      },
    ],
    [
      'another configuration than quoted',
      'attestation_invalid',
      ({ enclave }) => {
        enclave.tamper = (answer) => ({ ...answer, config: { ...answer.config, version: '9' } })
      },
    ],
    [
      'a mock quote under the roots of hardware',
      'attestation_invalid',
      ({ parts }) => {
        parts.verifier = createVerifier({ roots: vendorRoots })
      },
    ],
    [
      'collateral that has lapsed',
      'collateral_stale',
      async ({ parts, clock }) => {
        const old = createSimulatedCollateralStore({
          simulatorFactory: (at) => createSimulator({ at }),
          clock: { now: () => clock.now() - 60 * DAY_MS },
        })
        parts.collateral = old
      },
    ],
    [
      'a statement for another digest',
      'attestation_invalid',
      (service) => state(service, { digest: `0x${'00'.repeat(32)}` }),
    ],
    ['a statement for another key', 'attestation_invalid', (service) => state(service, { keyId: '00'.repeat(16) })],
    [
      'a statement for another address',
      'attestation_invalid',
      (service) => state(service, { address: `0x${'00'.repeat(20)}` }),
    ],
    [
      'a statement for another sample',
      'attestation_invalid',
      (service) => state(service, { entropyHash: '00'.repeat(32) }),
    ],
    ['a statement for another chain', 'attestation_invalid', (service) => state(service, { chainId: 1 })],
    [
      'a statement for another coordinator',
      'attestation_invalid',
      (service) => state(service, { coordinatorKey: '00'.repeat(32) }),
    ],
    [
      'a statement changed after the quote',
      'attestation_invalid',
      (service) =>
        editItem(service, (result) => ({
          ...result,
          statement: { ...result.statement, signedAt: '2026-06-15T11:00:00.000Z' },
        })),
    ],
    [
      'a wrong place',
      'attestation_invalid',
      (service) => editItem(service, (result) => ({ ...result, leafIndex: 1 - result.leafIndex })),
    ],
    [
      'a batch that is not there',
      'attestation_invalid',
      (service) => editItem(service, (result) => ({ ...result, batch: 1 })),
    ],
    [
      'swapped results',
      'attestation_invalid',
      ({ enclave }) => {
        enclave.tamper = (answer) => ({ ...answer, results: answer.results.toReversed() })
      },
    ],
    [
      'fewer results than items',
      'internal',
      ({ enclave }) => {
        enclave.tamper = (answer) => ({ ...answer, results: [] })
      },
    ],
    [
      'a signature of another key',
      'signature_invalid',
      ({ enclave }) => {
        enclave.state = (statement) => ({
          ...statement,
          signature: `0x${toHex(signTestDigest(fromHex(statement.digest.slice(2)), bob.privateKey))}`,
        })
      },
    ],
    [
      'a key of another address',
      'signature_invalid',
      ({ enclave }) => {
        enclave.state = (statement) => ({ ...statement, publicKey: toHex(bob.publicKey) })
      },
    ],
    ['a clock 5 s and a bit behind', 'attestation_invalid', (service) => shiftClock(service, -5_001)],
    ['a clock 5 s and a bit ahead', 'attestation_invalid', (service) => shiftClock(service, 5_001)],
    [
      'a sample that is younger than the signature by more than 5 s',
      'attestation_invalid',
      (service) => shiftSamples(service, 5_001),
    ],
    [
      'a sample that is older than the signature by more than 65 s',
      'attestation_invalid',
      (service) => shiftSamples(service, -65_001),
    ],
    [
      'collateral that was issued after the signature',
      'collateral_stale',
      ({ parts, clock, enclave }) => {
        // The simulator's collateral is a day old, so it is issued one second after now; the answer comes three seconds later.
        parts.collateral = createSimulatedCollateralStore({
          simulatorFactory: (at) => createSimulator({ at }),
          clock: { now: () => clock.now() - 3_000 + DAY_MS + 1_000 },
        })
        enclave.tamper = (answer) => {
          clock.advance(3_000)
          return answer
        }
      },
    ],
    [
      'a report of the coordinator that is younger than the signature by more than 5 s',
      'attestation_invalid',
      ({ selfReport, clock }) => {
        const { current } = selfReport
        selfReport.current = () => {
          const { selfAttestation, ...rest } = current()
          const fetchedAt = new Date(clock.now() + 5_001).toISOString()
          return { selfAttestation: { ...selfAttestation, fetchedAt }, ...rest }
        }
      },
    ],
    ['another transaction hash', 'signature_invalid', (service) => state(service, { txHash: `0x${'00'.repeat(32)}` })],
  ])('%s → %s', async (_, code, bend) => {
    const service = createService()
    await bend(service)
    expect(await service.outcomes(createRequest(0), createRequest(1))).toEqual([code, code])
    expect(service.store.writes).toBe(0)
    expect(service.store.rows.proofs.size).toBe(0)
  })

  test.each<[string, string, (result: SignedItem) => SignedItem | SignItemError]>([
    ['refused by the enclave', 'grant_invalid', () => ({ error: 'grant_invalid' })],
    ['not covered by the quote', 'attestation_invalid', (result) => ({ ...result, leafIndex: 2 })],
  ])('one item that is %s fails alone', async (_, code, bend) => {
    const service = createService()
    editItem(service, (result, index) => (index === 1 ? bend(result) : result))
    expect(await service.outcomes(createRequest(0), createRequest(1), createRequest(2))).toEqual([
      'signed',
      code,
      'signed',
    ])
    expect(service.store.rows.signed.size).toBe(2)
  })

  test('one signature that is not the wallet’s fails alone', async () => {
    const service = createService()
    const bad = createRequest(1)
    service.enclave.state = (statement) =>
      statement.digest === bad.asked.digest
        ? { ...statement, signature: `0x${toHex(signTestDigest(fromHex(bad.asked.digest.slice(2)), bob.privateKey))}` }
        : statement
    expect(await service.outcomes(createRequest(0), bad)).toEqual(['signed', 'signature_invalid'])
    expect(service.store.rows.signed.size).toBe(1)
  })

  test('a bad batch takes no other with it', async () => {
    const service = createService()
    service.enclave.limit = 1
    service.enclave.tamper = (answer) => ({
      ...answer,
      batches: answer.batches.map((batch, index) => (index === 0 ? { ...batch, quote: '00' } : batch)),
    })
    expect(await service.outcomes(createRequest(0), createRequest(1))).toEqual(['attestation_invalid', 'signed'])
    expect(service.store.rows.signed.size).toBe(1)
  })

  test.each([
    ['invalid_request', 'internal'],
    ['invalid_tx_metadata', 'invalid_tx_metadata'],
    ['digest_mismatch', 'digest_mismatch'],
    ['grant_invalid', 'grant_invalid'],
    ['session_expired', 'session_expired'],
    ['key_binding_mismatch', 'key_binding_mismatch'],
    ['quote_unavailable', 'enclave_unavailable'],
    ['entropy_refused', 'entropy_unavailable'],
    ['entropy_used', 'entropy_unavailable'],
    ['entropy_memory_full', 'enclave_unavailable'],
  ] as const)('an item that the enclave refuses as %s → %s', async (error, code) => {
    const service = createService()
    service.enclave.tamper = (answer) => ({ ...answer, batches: [], results: [{ error }] })
    expect(await service.outcomes(createRequest(0))).toEqual([code])
    expect(service.store.writes).toBe(0)
  })
})

describe('parts that fail', () => {
  test('no entropy: the enclave is not asked', async () => {
    const { sign, entropy, enclave, store } = createService()
    entropy.isDown = true
    await expect(sign(createRequest(0))).rejects.toMatchObject({ code: 'entropy_unavailable' })
    expect(enclave.calls).toBe(0)
    expect(store.writes).toBe(0)
  })

  test('fewer samples than items: as many are signed, and the others are told', async () => {
    const service = createService()
    const entropy = { take: async () => service.entropy.take(5) }
    const requests = Array.from({ length: 16 }, (_, nonce) => createRequest(nonce))
    const settled = await collect(service.toDeps({ entropy }), requests)
    expect(settled.slice(0, 5).map((one) => one?.status)).toEqual(Array(5).fill('fulfilled'))
    for (const one of settled.slice(5)) expect(one).toMatchObject({ reason: { code: 'entropy_unavailable' } })
    expect(service.enclave.calls).toBe(1)
  })

  test('an opening that the enclave answers twice fails the second of the two, and nothing else', async () => {
    const { outcomes, enclave, store } = createService()
    const content = { message: '0x68656c6c6f' } as const
    const asked = { kind: 'message', digest: `0x${toHex(hashMessage(content.message))}`, content } as const
    const message = () => ({ ...createRequest(0), asked })
    let first: (Pick<SignedItemV2, 'subject' | 'opening'> & { hash: string }) | undefined
    enclave.stateV2 = (signed) => {
      const { subject, opening, statement } = signed
      first ??= { subject, hash: statement.subject, ...(opening && { opening }) }
      const { hash, ...repeated } = first
      return { ...signed, ...repeated, statement: { ...statement, subject: hash } }
    }
    expect(await outcomes(message(), createRequest(0), message(), createRequest(0, bob))).toEqual([
      ...['signed', 'signed', 'attestation_invalid', 'signed'],
    ])
    expect(await outcomes(message(), createRequest(1))).toEqual(['attestation_invalid', 'signed'])
    expect(store.rows.signed.size).toBe(4)
  })

  test('collateral that is too large for a block: nothing of version 2 is released', async () => {
    const service = createService()
    const current: Parts['collateral']['current'] = async (platform) => {
      const stored = await service.parts.collateral.current(platform)
      return { ...stored, bytes: new Uint8Array(MAX_BLOCK_BYTES + 1) }
    }
    const deps = service.toDeps({ collateral: { current } })
    const [old] = await collect(deps, [createRequest(0)])
    expect(old?.status).toBe('fulfilled')
    const [settled] = await collect({ ...deps, receiptVersion: 2 }, [createRequest(1)])
    expect(settled).toMatchObject({ status: 'rejected', reason: { code: 'receipt_too_large' } })
    expect(service.store.rows.signed.size).toBe(1)
  })

  test('a commit that fails: no signature is answered', async () => {
    const { outcomes, store, enclave } = createService()
    enclave.tamper = (answer) => {
      store.isDown = true
      return answer
    }
    expect(await outcomes(createRequest(0), createRequest(1))).toEqual(['database_unavailable', 'database_unavailable'])
    store.isDown = false
    expect(store.rows.signed.size).toBe(0)
  })

  test('no report of the coordinator’s own: nothing is released', async () => {
    const { sign, selfReport, store } = createService()
    selfReport.isMissing = true
    const [settled] = await sign(createRequest(0))
    expect(settled?.status).toBe('rejected')
    expect(store.writes).toBe(0)
  })

  test('the enclave lost: nothing is stored, and the next call signs', async () => {
    const { sign, outcomes, enclave, store } = createService()
    const { signItems } = enclave
    enclave.signItems = () => Promise.reject(new CoordinatorError('enclave_unavailable', 'lost'))
    await expect(sign(createRequest(0))).rejects.toMatchObject({ code: 'enclave_unavailable' })
    expect(store.writes).toBe(0)
    enclave.signItems = signItems
    expect(await outcomes(createRequest(0))).toEqual(['signed'])
  })
})
