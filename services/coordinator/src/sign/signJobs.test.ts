import { createVerifier, vendorRoots } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { decodeLogEntry, encodeLogEntry } from '@countersign/log'
import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import {
  fromHex,
  hashAuthorization,
  MAX_BLOCK_BYTES,
  type ReleaseResponse,
  recoverPublicKey,
  type SignItem,
  type SignItemError,
  type Statement,
  toAddress,
  toEventHash,
  toHex,
} from '@countersign/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAgent } from '../../../../packages/policy/test/agentKey.ts'
import { createFakeRandom } from '../../test/ports.ts'
import {
  createSigningEnclave,
  type SignedItem,
  type SignedItemV2,
  signTestDigest,
  TEST_BOOT,
  TEST_OWNER,
} from '../../test/signingEnclave.ts'
import { createFakeLogService, ORIGIN, unavailable, witnessKeys } from '../../test/signingLog.ts'
import {
  alice,
  bob,
  createJob,
  createMessage,
  createSignService,
  createTransfer,
  createVaultTransfer,
  NOW,
  type SignService,
  vaultKey,
} from '../../test/signService.ts'
import { CoordinatorError } from '../errors.ts'
import type { SignDeps } from './batchSigner.ts'
import { createSignatureChecker, type SignatureChecker } from './checkSignatures.ts'
import { createCommitter } from './commit.ts'
import { createSimulatedCollateralStore } from './enclave/collateral/collateralStore.ts'
import type { SignJob } from './job.ts'

const DAY_MS = 86_400_000

let signatures: SignatureChecker
beforeAll(async () => {
  signatures = await createSignatureChecker()
})
afterAll(() => signatures.stop())

const createService = () => createSignService(signatures)

describe('signing', () => {
  test('returns signatures of the wallets and slugs of their proofs', async () => {
    const { start, store, sent } = createService()
    const jobs = [createTransfer(0), createTransfer(1), createTransfer(0, { wallet: bob })]
    const { over, settled } = start(jobs)
    await over
    for (const [index, answer] of settled().entries()) {
      if (answer?.status !== 'fulfilled') throw answer?.reason
      const { content, address } = jobs[index] as (typeof jobs)[number]
      const signature = fromHex((answer.value.signature ?? '').slice(2))
      expect(toAddress(recoverPublicKey(fromHex(content.digest.slice(2)), signature))).toBe(address)
      expect(answer.value.slug).toMatch(/^[\w-]{22}$/)
      expect(store.rows.proofs.has(answer.value.slug)).toBe(true)
    }
    expect(sent.times).toBe(1)
  })

  test('a slug is 128 random bits, independent of the signed content', async () => {
    const signWith = async (seed: string, nonce: number) => {
      const service = createService()
      const drawn: Uint8Array[] = []
      const source = createFakeRandom(seed)
      const random = (length: number) => {
        const bytes = source(length)
        drawn.push(bytes)
        return bytes
      }
      const commit = createCommitter({ ...service.parts, store: service.store, random })
      const { over, settled } = service.start([createTransfer(nonce)], { commit })
      await over
      const [answer] = settled()
      if (answer?.status !== 'fulfilled') throw answer?.reason
      expect(drawn.map(({ length }) => length)).toEqual([16])
      expect(answer.value.slug).toBe(Buffer.from(drawn[0] as Uint8Array).toString('base64url'))
      return answer.value
    }
    const [one, again, other] = [await signWith('a', 0), await signWith('b', 0), await signWith('a', 1)]
    // One transaction with two random values, and two transactions with one random value.
    expect([again.signature === one.signature, again.slug === one.slug]).toEqual([true, false])
    expect([other.signature === one.signature, other.slug === one.slug]).toEqual([false, true])
  })

  test('returns the earlier signature if another call signed meanwhile', async () => {
    const { start, store } = createService()
    const first = start([createTransfer(0)])
    await first.over
    const second = start([createTransfer(0), createTransfer(1)])
    await second.over
    expect(second.settled()).toEqual([first.settled()[0], expect.anything()])
    expect(store.rows.signed.size).toBe(2)
  })

  test('stores and returns a large batch in parts, the first before the last', async () => {
    const service = createService()
    const first = Promise.withResolvers<void>()
    let parts = 0
    const check: SignDeps['signatures']['check'] = async (claims) => {
      if (parts++ > 0) await first.promise
      return signatures.check(claims)
    }
    const jobs = Array.from({ length: 70 }, (_, nonce) => createTransfer(nonce))
    const { over, outcomes } = service.start(jobs, { signatures: { check } })
    await expect.poll(() => outcomes().filter((outcome) => outcome === 'signed')).toHaveLength(32)
    first.resolve()
    await over
    expect(outcomes()).toEqual(Array(70).fill('signed'))
  })

  test('commits items that are in two batches', async () => {
    const service = createService()
    service.signing.limit = 2
    expect(await service.sign(createTransfer(0), createTransfer(1), createTransfer(2))).toEqual(Array(3).fill('signed'))
    expect(service.inserted.map(({ batch }) => batch.sequence).sort()).toEqual([0, 1])
    expect(service.store.rows.signed.size).toBe(3)
  })

  test('returns the stored signature if another coordinator was first', async () => {
    const service = createService()
    const { walletId, content } = createTransfer(0)
    const signature = `0x${'77'.repeat(65)}` as const
    const slug = 'AAAAAAAAAAAAAAAAAAAAAA'
    const store = { insertSignings: async () => [{ walletId, digest: content.digest, signature, slug }] }
    const { over, settled } = service.start([createTransfer(0)], {
      commit: createCommitter({ ...service.parts, store }),
    })
    await over
    expect(settled()).toEqual([{ status: 'fulfilled', value: { signature, slug } }])
  })
})

test('an unreadable earlier signature fails only its caller', async () => {
  const service = createService()
  const insertSignings: SignService['store']['insertSignings'] = async (parameters) =>
    (await service.store.insertSignings(parameters)).slice(1)
  const { over, outcomes } = service.start([createTransfer(0), createTransfer(1)], {
    commit: createCommitter({ ...service.parts, store: { insertSignings } }),
  })
  await over
  expect(outcomes()).toEqual(['database_unavailable', 'signed'])
})

/* `verifyBatch` and `assertItemSigned` test the content of quotes and statements. */
describe('stores and returns nothing for invalid evidence', () => {
  /** Statements of a lying enclave, covered by the quote. */
  const state = ({ signing }: SignService, changes: Partial<Statement>) => {
    signing.state = (statement) => ({ ...statement, ...changes })
  }
  const shiftSamples = (service: SignService, ms: number) => {
    const { take } = service.entropy
    const timestamp = new Date(NOW + ms).toISOString()
    service.entropy.take = async (count) => (await take(count)).map((one) => ({ ...one, timestamp }))
  }
  const shiftClock = (service: SignService, ms: number) => {
    // The sample has the same time, so only the clocks of enclave and coordinator differ.
    shiftSamples(service, ms)
    state(service, { signedAt: new Date(NOW + ms).toISOString() })
  }

  test.each([
    [-5_000, 0],
    [5_000, 0],
    [0, 5_000],
    [0, -65_000],
  ])(
    'clocks that differ by %i ms, and samples of %i ms, are within the verifiers’ tolerance',
    async (clock, sample) => {
      const service = createService()
      state(service, { signedAt: new Date(NOW + clock).toISOString() })
      shiftSamples(service, sample)
      expect(await service.sign(createTransfer(0))).toEqual(['signed'])
    },
  )

  test('verifies the quote for the first and last time of its statements', async () => {
    const service = createService()
    const times = [0, -2_000, 1_000].map((ms) => NOW + ms)
    const left = [...times]
    service.signing.state = (statement) => ({ ...statement, signedAt: new Date(left.shift() ?? NOW).toISOString() })
    const { verifyBatch } = service.toDeps()
    const seen: unknown[] = []
    const { over, outcomes } = service.start(
      times.map((_, index) => createTransfer(index)),
      {
        verifyBatch(batch, terms, use) {
          seen.push(use.at)
          return verifyBatch(batch, terms, use)
        },
      },
    )
    await over
    expect(outcomes()).toEqual(['signed', 'signed', 'signed'])
    expect(seen).toEqual([{ first: NOW - 2_000, last: NOW + 1_000 }])
  })

  test.each<[string, string, (service: SignService) => unknown]>([
    [
      'a quote of another batch',
      'attestation_invalid',
      ({ signing }) => {
        signing.tamper = (answer) => ({
          ...answer,
          batches: answer.batches.map((batch) => ({ ...batch, sequence: 7 })),
        })
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
      'a platform without collateral',
      'collateral_stale',
      ({ signing }) => {
        signing.quote = { faults: { pckOtherFmspc: true } }
      },
    ],
    [
      'collateral that was issued after the signature',
      'collateral_stale',
      ({ parts, clock, time, signing }) => {
        // The simulator's collateral is a day old, so it is issued one second from now. The response comes three seconds later.
        parts.collateral = createSimulatedCollateralStore({
          simulatorFactory: (at) => createSimulator({ at }),
          clock: { now: () => clock.now() - 3_000 + DAY_MS + 1_000 },
        })
        signing.tamper = (answer) => {
          time.jump(3_000)
          return answer
        }
      },
    ],
    [
      'a statement for another digest',
      'attestation_invalid',
      (service) => state(service, { digest: `0x${'00'.repeat(32)}` }),
    ],
    [
      'a missing batch',
      'attestation_invalid',
      ({ signing }) => {
        signing.tamper = (answer) => ({ ...answer, batches: [] })
      },
    ],
    [
      'swapped results',
      'attestation_invalid',
      ({ signing }) => {
        signing.tamper = (answer) => ({ ...answer, results: answer.results.toReversed() })
      },
    ],
    [
      'fewer results than items',
      'internal',
      ({ signing }) => {
        signing.tamper = (answer) => ({ ...answer, results: [] })
      },
    ],
    [
      'a signature of another key',
      'signature_invalid',
      ({ signing }) => {
        signing.state = (statement) => ({
          ...statement,
          signature: `0x${toHex(signTestDigest(fromHex(statement.digest.slice(2)), bob.privateKey))}`,
        })
      },
    ],
    ['another transaction hash', 'signature_invalid', (service) => state(service, { txHash: `0x${'00'.repeat(32)}` })],
    [
      'an invalid time',
      'attestation_invalid',
      ({ signing }) => {
        signing.tamper = ({ results, ...answer }) => ({
          ...answer,
          results: results.map((one) => ({ ...one, statement: { ...(one as SignedItem).statement, signedAt: 'now' } })),
        })
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
      'a report of the coordinator that is younger than the signature by more than 5 s',
      'attestation_invalid',
      ({ selfReport }) => {
        const { current } = selfReport
        selfReport.current = () => {
          const { selfAttestation, ...rest } = current()
          const fetchedAt = new Date(NOW + 5_001).toISOString()
          return { selfAttestation: { ...selfAttestation, fetchedAt }, ...rest }
        }
      },
    ],
  ])('%s → %s', async (_, code, bend) => {
    const service = createService()
    bend(service)
    expect(await service.sign(createTransfer(0), createTransfer(1))).toEqual([code, code])
    expect([service.store.writes, service.store.rows.proofs.size]).toEqual([0, 0])
  })

  test.each<[string, string, (result: SignedItem) => SignedItem | SignItemError]>([
    ['refused by the enclave', 'grant_invalid', () => ({ error: 'grant_invalid' })],
    ['not covered by the quote', 'attestation_invalid', (result) => ({ ...result, leafIndex: 2 })],
  ])('only the item that is %s fails', async (_, code, bend) => {
    const { signing, sign, store } = createService()
    signing.tamper = ({ results, ...answer }) => ({
      ...answer,
      results: results.map((result, index) => (index === 1 ? bend(result as SignedItem) : result)),
    })
    expect(await sign(createTransfer(0), createTransfer(1), createTransfer(2))).toEqual(['signed', code, 'signed'])
    expect(store.rows.signed.size).toBe(2)
  })

  test('a signature of another key fails only its item', async () => {
    const { signing, sign, store } = createService()
    const { digest } = createTransfer(1).content
    signing.state = (statement) =>
      statement.digest === digest
        ? { ...statement, signature: `0x${toHex(signTestDigest(fromHex(digest.slice(2)), bob.privateKey))}` }
        : statement
    expect(await sign(createTransfer(0), createTransfer(1))).toEqual(['signed', 'signature_invalid'])
    expect(store.rows.signed.size).toBe(1)
  })

  test('an invalid batch does not affect others', async () => {
    const { signing, sign, store } = createService()
    signing.limit = 1
    signing.tamper = (answer) => ({
      ...answer,
      batches: answer.batches.map((batch, index) => (index === 0 ? { ...batch, quote: '00' } : batch)),
    })
    expect(await sign(createTransfer(0), createTransfer(1))).toEqual(['attestation_invalid', 'signed'])
    expect(store.rows.signed.size).toBe(1)
  })
})

test('if the enclave does not know policies, calls again with them and the same samples, only for those items', async () => {
  const service = createService()
  const calls: { items: readonly SignItem[]; policies: readonly string[] | undefined }[] = []
  const answers: SignItemError[][] = [
    [{ error: 'policy_unknown' }, { error: 'grant_invalid' }, { error: 'policy_unknown' }],
    [{ error: 'approvals_missing', missing: 2 }, { error: 'policy_unknown' }],
  ]
  const { config, settings } = service.signing
  const signItems: SignDeps['enclave']['signItems'] = async (items, policies) => {
    calls.push({ items, policies })
    return { batches: [], results: answers[calls.length - 1] ?? [], config, settings }
  }
  const jobs = [0, 1, 2].map((nonce) => createVaultTransfer(nonce, null))
  const { over, outcomes } = service.start(jobs, { enclave: { signItems } })
  await over
  const { policy } = jobs[0]?.vault ?? {}
  // Each text once.
  expect(calls.map(({ policies }) => policies)).toEqual([undefined, [policy?.text]])
  expect(calls[1]?.items).toEqual([calls[0]?.items[0], calls[0]?.items[2]])
  expect(calls[0]?.items[0]).toMatchObject({ statementVersion: 2, vault: { policy: policy?.hash } })
  expect(service.entropy.taken).toBe(3)
  expect(outcomes()).toEqual(['approvals_missing', 'grant_invalid', 'enclave_unavailable'])
})

describe('samples that the enclave rejects', () => {
  /** Rejects items with these samples, like an enclave that has verified them. */
  function refuseSamples(service: SignService, isRefused: (item: SignItem) => boolean) {
    const calls: (readonly SignItem[])[] = []
    const signItems: SignDeps['enclave']['signItems'] = async (items) => {
      calls.push(items)
      const refused = items.map(isRefused)
      const good = items.filter((_, index) => !refused[index])
      const { results, ...answer } = await service.signing.signItems(good)
      const left = [...results]
      const all = refused.map((one) => (one ? { error: 'entropy_refused' as const } : left.shift()))
      return { ...answer, results: all as typeof results }
    }
    return { calls, enclave: { signItems } }
  }
  const valuesOf = (items: readonly SignItem[] = []) => items.map(({ witness }) => witness.valueHex)

  test('only the job with a forged sample is signed again, with another one, and the sample is counted', async () => {
    const service = createService()
    const forged: string[] = []
    const { calls, enclave } = refuseSamples(service, ({ witness }) => forged.includes(witness.valueHex))
    const { take } = service.entropy
    service.entropy.take = async (count) => {
      const samples = await take(count)
      forged.push(samples[1]?.valueHex ?? '')
      return samples
    }
    const { over, outcomes } = service.start(
      [0, 1, 2].map((nonce) => createTransfer(nonce)),
      { enclave },
    )
    await over
    expect(outcomes()).toEqual(['signed', 'signed', 'signed'])
    expect(calls.map(({ length }) => length)).toEqual([3, 1])
    expect(calls[1]?.[0]).toMatchObject({ digest: createTransfer(1).content.digest })
    expect(service.entropy.refused.map(({ valueHex }) => valueHex)).toEqual(forged)
    const stored = service.inserted.flatMap(({ signings }) => signings.map(({ witness }) => witness.valueHex))
    expect(stored).toHaveLength(3)
    expect(stored).not.toContain(forged[0])
  })

  test.each(['entropy_refused', 'entropy_used'] as const)(
    'calls an enclave that always returns %s twice',
    async (error) => {
      const service = createService()
      service.signing.tamper = ({ results, ...answer }) => ({ ...answer, results: results.map(() => ({ error })) })
      expect(await service.sign(createTransfer(0), createTransfer(1))).toEqual(Array(2).fill('entropy_unavailable'))
      expect([service.signing.calls, service.entropy.refused.length, service.entropy.taken]).toEqual([2, 2, 4])
      expect(service.store.writes).toBe(0)
    },
  )

  test('without genuine samples, jobs that have one are answered and the others fail', async () => {
    const service = createService()
    const { calls, enclave } = refuseSamples(
      service,
      ({ witness }) => witness.valueHex !== calls[0]?.[0]?.witness.valueHex,
    )
    service.entropy.takeVerified = () => Promise.reject(new CoordinatorError('entropy_unavailable', 'none'))
    const { over, outcomes } = service.start([createTransfer(0), createTransfer(1)], { enclave })
    await over
    expect([outcomes(), calls.length]).toEqual([['signed', 'entropy_unavailable'], 1])
  })

  test('with fewer genuine samples than jobs, signs that many', async () => {
    const service = createService()
    const { takeVerified } = service.entropy
    service.entropy.takeVerified = () => takeVerified(1)
    const { calls, enclave } = refuseSamples(service, () => calls.length === 1)
    const { over, outcomes } = service.start([createTransfer(0), createTransfer(1)], { enclave })
    await over
    expect(outcomes()).toEqual(['signed', 'entropy_unavailable'])
    expect(new Set(calls.flatMap(valuesOf)).size).toBe(3)
  })

  test('does not send a rejected beacon round again, because there is no other', async () => {
    const service = createService()
    const { calls, enclave } = refuseSamples(service, () => true)
    const { take, takeVerified } = service.entropy
    const { over, outcomes } = service.start([createTransfer(0)], { enclave, entropy: { take, takeVerified } })
    await over
    expect([outcomes(), calls.length]).toEqual([['entropy_unavailable'], 1])
  })

  test('with a log: logs the signature with the second sample once, and nothing of the first', async () => {
    const service = createSignService(signatures, { isLogged: true })
    let isFirst = true
    service.enclave.refuse = () => {
      const refusal = isFirst ? ({ error: 'entropy_refused' } as const) : undefined
      isFirst = false
      return refusal
    }
    expect(await service.sign(createTransfer(0), createTransfer(1))).toEqual(['signed', 'signed'])
    expect(service.inserted.flatMap(({ signings }) => signings)).toHaveLength(2)
    expect(service.entropy.refused).toHaveLength(1)
  })
})

describe('failing parts', () => {
  test('does not call the enclave without entropy', async () => {
    const { sign, entropy, signing, store } = createService()
    entropy.isDown = true
    expect(await sign(createTransfer(0))).toEqual(['entropy_unavailable'])
    expect([signing.calls, store.writes]).toEqual([0, 0])
  })

  test('with fewer samples than items, signs that many and fails the others', async () => {
    const { entropy, sign, signing } = createService()
    const { take } = entropy
    entropy.take = () => take(2)
    const jobs = Array.from({ length: 4 }, (_, nonce) => createTransfer(nonce))
    expect(await sign(...jobs)).toEqual(['signed', 'signed', 'entropy_unavailable', 'entropy_unavailable'])
    expect(signing.calls).toBe(1)
  })

  test('an opening that the enclave returns twice fails only the second item', async () => {
    const { sign, signing, store } = createService()
    let first: (Pick<SignedItemV2, 'subject' | 'opening'> & { hash: string }) | undefined
    signing.stateV2 = (signed) => {
      const { subject, opening, statement } = signed
      first ??= { subject, hash: statement.subject, ...(opening && { opening }) }
      const { hash, ...repeated } = first
      return { ...signed, ...repeated, statement: { ...statement, subject: hash } }
    }
    expect(await sign(createMessage(), createTransfer(0), createMessage(), createTransfer(0, { wallet: bob }))).toEqual(
      ['signed', 'signed', 'attestation_invalid', 'signed'],
    )
    expect(await sign(createMessage(), createTransfer(1))).toEqual(['attestation_invalid', 'signed'])
    expect(store.rows.signed.size).toBe(4)
  })

  test('releases nothing of version 2 if the collateral is too large for a block', async () => {
    const service = createService()
    const { current } = service.parts.collateral
    service.parts.collateral = {
      current: async (platform) => ({ ...(await current(platform)), bytes: new Uint8Array(MAX_BLOCK_BYTES + 1) }),
    }
    expect(await service.sign(createTransfer(0))).toEqual(['signed'])
    const { over, settled } = service.start([createTransfer(1)], { receiptVersion: 2 })
    await over
    expect(settled()).toMatchObject([{ status: 'rejected', reason: { code: 'receipt_too_large' } }])
    expect(service.store.rows.signed.size).toBe(1)
  })

  test('returns no signature if the commit fails', async () => {
    const { sign, store, signing } = createService()
    signing.tamper = (answer) => {
      store.isDown = true
      return answer
    }
    expect(await sign(createTransfer(0), createTransfer(1))).toEqual(['database_unavailable', 'database_unavailable'])
    expect(store.rows.signed.size).toBe(0)
  })

  test('releases nothing without a report of the coordinator', async () => {
    const { start, selfReport, store } = createService()
    selfReport.isMissing = true
    const { over, settled } = start([createTransfer(0)])
    await over
    expect(settled()[0]?.status).toBe('rejected')
    expect(store.writes).toBe(0)
  })

  test('stores nothing if the enclave is lost, and the next call signs', async () => {
    const { start, sign, store } = createService()
    const signItems = () => Promise.reject(new CoordinatorError('enclave_unavailable', 'lost'))
    const { over, outcomes } = start([createTransfer(0)], { enclave: { signItems } })
    await over
    expect(outcomes()).toEqual(['enclave_unavailable'])
    expect(store.writes).toBe(0)
    expect(await sign(createTransfer(0))).toEqual(['signed'])
  })
})

const createLoggedService = (shared = {}) => createSignService(signatures, { isLogged: true, ...shared })

const leavesOf = ({ logService }: SignService) =>
  logService.recorded.flatMap(({ appended }) =>
    appended.entries.flatMap((entry) => {
      const decoded = decodeLogEntry(fromHex(entry))
      return 'leaf' in decoded ? decoded.leaf : []
    }),
  )

/** Resolves when no further work happens without outside action. */
const settleDown = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('signing with a log', () => {
  test('every kind is written, cosigned, released, stored with its place in the log, and acknowledged', async () => {
    const service = createLoggedService()
    const subject = { address: alice.address, policy: null, owner: TEST_OWNER }
    const authorization = { chainId: 1, address: `0x${'7a'.repeat(20)}`, nonce: 3 } as const
    const jobs = [
      createTransfer(0),
      createMessage(),
      createJob({ kind: 'authorization', authorization, digest: `0x${toHex(hashAuthorization(authorization))}` }),
      createJob({ kind: 'address', digest: toEventHash({ kind: 'address', subject }), owner: TEST_OWNER }),
    ]
    const { over, settled, outcomes } = service.start(jobs)
    await over
    expect(outcomes()).toEqual(Array(4).fill('signed'))
    expect(service.logService.calls).toEqual(['record', 'cosign'])
    const leaves = leavesOf(service)
    expect(service.enclave.asked()).toEqual(leaves)
    const { walletId, content } = createTransfer(0)
    expect(service.logService.recorded[0]?.claims).toHaveLength(3)
    expect(service.logService.recorded[0]?.claims[0]).toEqual({ walletId, digest: content.digest, leaf: leaves[0] })
    expect(JSON.stringify(service.logService.recorded)).not.toContain(createMessage().content.digest.slice(2))
    expect(
      service.inserted.flatMap(({ signings }) => signings.map((row) => 'logIndex' in row && row.logIndex)),
    ).toEqual([0, 1, 2, 3])
    for (const { batch } of service.inserted) {
      expect(batch.logKey).toBe(service.enclave.logKey)
      expect(batch.log?.note).toMatch(/^log\.example\/one\n4\n/)
    }
    expect(settled()[1]).toMatchObject({ value: { opening: { content: { kind: 'message' } } } })
    service.time.pass(500)
    await settleDown()
    expect(service.enclave.acknowledged()).toEqual(leaves)
    expect(service.enclave.dropped).toEqual([])
    expect(service.time.delays()).toEqual([])
  })

  test('requests releases only after witnesses cosigned; meanwhile others are gathered', async () => {
    const service = createLoggedService()
    const cosigning = Promise.withResolvers<void>()
    service.logService.beforeCosign = () => cosigning.promise
    const { over, outcomes } = service.start([createTransfer(0)])
    await expect.poll(() => service.logService.calls).toEqual(['record', 'cosign'])
    await settleDown()
    expect(service.sent.times).toBe(0)
    expect([service.enclave.requests, service.inserted, outcomes()]).toEqual([[], [], [undefined]])
    cosigning.resolve()
    await over
    expect([service.sent.times, outcomes()]).toEqual([1, ['signed']])
  })

  test('missing witnesses of a vault take no slot', async () => {
    const service = createLoggedService()
    service.logService.beforeCosign = () => new Promise(() => {})
    service.start([createVaultTransfer(0, { witnesses: [witnessKeys[0] ?? ''], quorum: 1 })])
    await expect.poll(() => service.sent.times).toBe(1)
    expect(service.enclave.requests).toEqual([])
  })

  test.each<[string, (service: SignService, never: Promise<never>) => void]>([
    ['a database that hangs', ({ logService }, never) => (logService.beforeRecord = () => never)],
    ['witnesses that hang', ({ logService }, never) => (logService.beforeCosign = () => never)],
    ['an enclave or a quote that hangs', ({ enclave }, never) => (enclave.beforeRelease = () => never)],
  ])('%s: the call keeps its slot for two seconds', async (_, hang) => {
    const service = createLoggedService()
    hang(service, new Promise(() => {}))
    service.start([createTransfer(0)])
    await settleDown()
    service.time.pass(1_999)
    expect(service.sent.times).toBe(0)
    service.time.pass(1)
    expect(service.sent.times).toBe(1)
  })

  test('requests with claims of others wait for their result without a slot', async () => {
    const service = createLoggedService()
    const { walletId, content } = createTransfer(0)
    service.logService.claims.set(`${walletId} ${content.digest}`, '00'.repeat(32))
    const { outcomes } = service.start([createTransfer(0)])
    await expect.poll(() => service.sent.times).toBe(1)
    expect(outcomes()).toEqual([undefined])
  })

  test('asks witnesses only after entries and claims are stored', async () => {
    const service = createLoggedService()
    const writing = Promise.withResolvers<void>()
    service.logService.beforeRecord = () => writing.promise
    const { over, outcomes } = service.start([createTransfer(0)])
    await settleDown()
    expect(service.logService.calls).toEqual(['record'])
    writing.resolve()
    await over
    expect(outcomes()).toEqual(['signed'])
  })

  test('releases items of several batches in separate calls, so that none waits for another quote', async () => {
    const service = createLoggedService()
    service.signing.limit = 2
    expect(await service.sign(createTransfer(0), createTransfer(1), createTransfer(2))).toEqual(Array(3).fill('signed'))
    expect(service.logService.calls.filter((call) => call === 'record')).toHaveLength(1)
    expect(service.logService.cosigns.map(({ size }) => size)).toEqual([2, 3])
    expect(service.enclave.requests.flatMap(({ leaves }) => leaves?.length ?? [])).toEqual([2, 1])
    expect(service.enclave.asked().toSorted()).toEqual(leavesOf(service).toSorted())
  })

  test.each<[string, string, (answer: ReleaseResponse) => ReleaseResponse]>([
    ['without a quote', 'attestation_invalid', (answer) => ({ ...answer, quotes: [] })],
    [
      'with the quote of another batch',
      'attestation_invalid',
      (answer) => ({ ...answer, quotes: answer.quotes.map((one) => ({ ...one, sequence: one.sequence + 1 })) }),
    ],
    [
      'with a quote that does not hold',
      'attestation_invalid',
      (answer) => ({ ...answer, quotes: answer.quotes.map((one) => ({ ...one, quote: `00${one.quote.slice(2)}` })) }),
    ],
    ['with nothing, since the quote failed', 'log_unavailable', () => ({ statements: [null, null], quotes: [] })],
  ])('released %s: %s, stores nothing and releases the claim', async (_, code, tamper) => {
    const service = createLoggedService()
    service.enclave.tamperReleased = (answer) => (answer.statements.length > 0 ? tamper(answer) : answer)
    expect(await service.sign(createTransfer(0), createMessage())).toEqual([code, code])
    await settleDown()
    expect([service.inserted, service.logService.claims.size, service.enclave.acknowledged()]).toEqual([[], 0, []])
    expect(service.enclave.avoided).toHaveLength(code === 'log_unavailable' ? 2 : 0)
  })

  test('splits large releases with one note, so that each response can be read', async () => {
    const service = createLoggedService()
    service.signing.limit = 4
    const large = Array.from({ length: 8 }, (_, nonce) => createTransfer(nonce, { data: `0x${'00'.repeat(128_000)}` }))
    expect(await service.sign(...large)).toEqual(Array(8).fill('signed'))
    expect(service.enclave.requests.flatMap(({ leaves }) => leaves?.length ?? [])).toEqual([4, 4])
  })

  test('releases only its own leaves of a batch shared with other coordinators', async () => {
    const service = createLoggedService()
    const foreign = createTransfer(7)
    // As if another coordinator's call had been part of the same batch.
    const signItems: SignDeps['enclave']['signItems'] = async (items) => {
      const other = { ...items[0], ...foreign.content, kind: 'transaction' } as SignItem
      const { results, ...rest } = await service.enclave.signItems([...items, other])
      return { ...rest, results: results.slice(0, items.length) }
    }
    const { over, outcomes } = service.start([createTransfer(0)], { enclave: { signItems } })
    await over
    expect(outcomes()).toEqual(['signed'])
    expect(service.enclave.asked()).toEqual(leavesOf(service).slice(0, 1))
    expect(service.logService.cosigns).toMatchObject([{ size: 1 }])
  })

  test('sends an unknown policy immediately, even if the others wait for witnesses', async () => {
    const service = createLoggedService()
    service.enclave.refuse = ({ vault }, policies) =>
      vault !== undefined && policies === undefined ? { error: 'policy_unknown' } : undefined
    const cosigning = Promise.withResolvers<void>()
    service.logService.beforeCosign = () => cosigning.promise
    const { over, outcomes } = service.start([createTransfer(0), createVaultTransfer(1, null)])
    await expect.poll(() => service.logService.calls.filter((call) => call === 'cosign')).toHaveLength(2)
    cosigning.resolve()
    await over
    expect(outcomes()).toEqual(['signed', 'signed'])
  })

  test('if the second call fails, the items of the first are answered', async () => {
    const service = createLoggedService()
    service.enclave.refuse = ({ vault }, policies) => {
      if (policies !== undefined) throw new CoordinatorError('enclave_unavailable', 'down')
      return vault && { error: 'policy_unknown' }
    }
    expect(await service.sign(createTransfer(0), createVaultTransfer(1, null))).toEqual([
      'signed',
      'enclave_unavailable',
    ])
  })

  test('a coordinator without witnesses releases nothing and logs the reason', async () => {
    const service = createLoggedService()
    const { over, outcomes } = service.start([createTransfer(0)], { signLog: undefined })
    await over
    expect(outcomes()).toEqual(['log_unavailable'])
    expect(service.enclave.requests).toEqual([])
    expect(service.log.lines.map(({ level }) => level)).toEqual(['warn'])
  })

  test('an enclave without a log signs without the log service', async () => {
    const service = createLoggedService()
    const { signing, selfReport, clock, time } = service
    const plain = createSigningEnclave({ clock, coordinatorKey: selfReport.publicKey, wallets: [alice] })
    const { over, outcomes } = service.start([createTransfer(0)], { enclave: plain })
    await over
    expect(outcomes()).toEqual(['signed'])
    expect([service.logService.calls, signing.calls, time.delays()]).toEqual([[], 0, []])
    expect(service.inserted[0]?.batch).not.toHaveProperty('logKey')
    expect(service.inserted[0]?.signings[0]).not.toHaveProperty('logIndex')
  })
})

describe('a failure after signing drops the statement, releases its claim, and never requests it', () => {
  const down = new CoordinatorError('database_unavailable', 'the database cannot be reached')
  test.each<[string, string, (service: SignService) => void]>([
    [
      'the entries cannot be written',
      'log_unavailable',
      ({ logService }) => (logService.beforeRecord = () => Promise.reject(unavailable())),
    ],
    [
      'the database fails while they are',
      'database_unavailable',
      ({ logService }) => (logService.beforeRecord = () => Promise.reject(down)),
    ],
    [
      'too few witnesses cosign',
      'log_unavailable',
      ({ logService }) => (logService.beforeCosign = () => Promise.reject(unavailable())),
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
    const service = createLoggedService()
    breakIt(service)
    expect(await service.sign(createTransfer(0), createMessage())).toEqual([code, code])
    await settleDown()
    const leaves = [...service.enclave.dropped]
    expect(leaves).toHaveLength(2)
    // Messages have no claim.
    expect(service.logService.givenUp).toEqual(leaves.slice(0, 1))
    expect([service.enclave.asked(), service.inserted, service.logService.claims.size]).toEqual([[], [], 0])
    service.time.pass(60_000)
    await settleDown()
    expect(service.enclave.asked()).toEqual([])
    // The caller may retry immediately.
    const hooks = { beforeRecord: async () => {}, beforeCosign: async () => {} }
    const again = createLoggedService({ logService: Object.assign(service.logService, hooks), store: service.store })
    expect(await again.sign(createTransfer(0))).toEqual(['signed'])
  })

  test('if the enclave is gone before the release, abandons the statement and signs again, even if it was released', async () => {
    const service = createLoggedService()
    const down = new Set<string>()
    service.enclave.beforeRelease = async ({ leaves = [] }) => {
      for (const leaf of leaves) down.add(leaf)
      if (leaves.length > 0) throw unavailable()
    }
    expect(await service.sign(createTransfer(0), createMessage())).toEqual(['log_unavailable', 'log_unavailable'])
    await settleDown()
    expect(service.enclave.dropped).toEqual([...down])
    expect([down.size, service.signing.calls, service.inserted, service.logService.claims.size]).toEqual([4, 2, [], 0])

    let isDown = true
    service.enclave.beforeRelease = async ({ leaves = [] }) => {
      if (leaves.length > 0 && isDown) {
        isDown = false
        throw unavailable()
      }
    }
    expect(await service.sign(createTransfer(1), createMessage())).toEqual(['signed', 'signed'])
    const samples = service.inserted.flatMap(({ signings }) => signings.map(({ witness }) => witness))
    expect(new Set(samples).size).toBe(2)
    expect(service.enclave.dropped).toHaveLength(6)
  })

  test('if storing fails, does not acknowledge, so that the enclave reports it', async () => {
    const service = createLoggedService()
    service.store.isDown = true
    expect(await service.sign(createTransfer(0), createTransfer(1))).toEqual(Array(2).fill('database_unavailable'))
    service.time.pass(1_000)
    await settleDown()
    expect(service.logService.givenUp.toSorted()).toEqual(leavesOf(service).toSorted())
    expect(service.enclave.requests.flatMap(({ acknowledge }) => acknowledge ?? [])).toEqual([])
  })

  test('returns an earlier signature that was stored meanwhile, and does not acknowledge its own', async () => {
    const service = createLoggedService()
    expect(await service.sign(createTransfer(0))).toEqual(['signed'])
    service.logService.claims.clear()
    expect(await service.sign(createTransfer(0))).toEqual(['signed'])
    service.time.pass(1_000)
    await settleDown()
    expect(service.enclave.acknowledged()).toEqual(leavesOf(service).slice(0, 1))
  })

  test.each(['beforeRecord', 'beforeCosign'] as const)(
    '%s takes longer than 10 s: callers get an error, and the late result is dropped',
    async (hook) => {
      const service = createLoggedService()
      const late = Promise.withResolvers<void>()
      service.logService[hook] = () => late.promise
      const { over, outcomes } = service.start([createTransfer(0)])
      await expect.poll(() => service.logService.calls).toContain(hook === 'beforeRecord' ? 'record' : 'cosign')
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
      expect(service.time.delays()).toEqual([])
    },
  )

  test.each([
    ['fails', () => Promise.reject(down)],
    ['hangs', () => new Promise<void>(() => {})],
  ])('if releasing claims %s, the caller still gets an error', async (_, beforeGiveUp) => {
    const service = createLoggedService()
    Object.assign(service.logService, { beforeGiveUp, beforeCosign: () => Promise.reject(unavailable()) })
    const { over, outcomes } = service.start([createTransfer(0)])
    await expect.poll(() => service.logService.calls).toContain('giveUp')
    service.time.pass(1_000)
    await over
    expect(outcomes()).toEqual(['log_unavailable'])
    expect(service.log.lines.map(({ level }) => level)).toEqual(['warn'])
  })
})

describe('an invalid one does not fail the others', () => {
  const editEntry = (service: SignService, edit: (entry: Uint8Array) => Uint8Array) => {
    service.enclave.tamperSigned = ({ log, ...answer }) => ({
      ...answer,
      log: log && { ...log, entries: log.entries.map((entry, at) => (at === 1 ? toHex(edit(fromHex(entry))) : entry)) },
    })
  }
  const editStatement = (service: SignService, edit: (statement: never) => unknown) => {
    service.enclave.tamperReleased = ({ statements, ...answer }) => ({
      ...answer,
      statements: statements.map((one, at) => (at === 1 ? (edit(one as never) as never) : one)),
    })
  }
  type Released = { statement: { signedAt: string }; subject: Record<string, unknown> }
  test.each<[string, string, (service: SignService) => void]>([
    ['its statement was erased', 'log_unavailable', (service) => editStatement(service, () => null)],
    [
      'its statement says another time than the log',
      'attestation_invalid',
      (service) =>
        editEntry(service, (entry) => {
          const decoded = decodeLogEntry(entry)
          return decoded.kind === 'signature' ? encodeLogEntry({ ...decoded, timeMs: decoded.timeMs + 1 }) : entry
        }),
    ],
    [
      'its statement is another than its leaf',
      'attestation_invalid',
      (service) =>
        editStatement(service, (one: Released) => ({
          ...one,
          statement: { ...one.statement, signedAt: new Date(NOW + 1).toISOString() },
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
      'its entry is of a dropped statement',
      'attestation_invalid',
      (service) => editEntry(service, (e) => e.with(0, 2)),
    ],
    ['its entry is invalid', 'attestation_invalid', (service) => editEntry(service, (e) => e.with(0, 9))],
    ['its entry is of another key', 'attestation_invalid', (service) => editEntry(service, (e) => e.with(1, 0xee))],
    ['its entry is of another leaf', 'attestation_invalid', (service) => editEntry(service, (e) => e.with(17, 0xee))],
    ['its entry is cut off', 'attestation_invalid', (service) => editEntry(service, (e) => e.subarray(0, 45))],
  ])('%s: %s', async (_, code, breakIt) => {
    const service = createLoggedService()
    breakIt(service)
    expect(await service.sign(createTransfer(0), createTransfer(1))).toEqual(['signed', code])
    service.time.pass(500)
    await settleDown()
    const [good, bad] = [...service.enclave.held.keys(), ...service.enclave.dropped]
    expect(service.enclave.acknowledged()).toEqual([good])
    expect(service.logService.givenUp).toEqual([bad])
    expect(service.store.rows.signed.size).toBe(1)
  })
})

describe('drops a statement with a wrong date instead of releasing it', () => {
  test.each([
    ['5 s ahead', 5_000, 'signed'],
    ['more than that ahead', 5_001, 'attestation_invalid'],
    ['5 s behind', -5_000, 'signed'],
    ['more than that behind', -5_001, 'attestation_invalid'],
  ])('%s', async (_, ms, outcome) => {
    const service = createLoggedService()
    service.signing.stateV2 = (signed) => {
      const signedAt = new Date(NOW + ms).toISOString()
      return signed.opening === undefined ? signed : { ...signed, statement: { ...signed.statement, signedAt } }
    }
    expect(await service.sign(createTransfer(0), createMessage())).toEqual(['signed', outcome])
    await settleDown()
    const [transfer, dated] = leavesOf(service)
    const isSigned = outcome === 'signed'
    expect(service.enclave.asked()).toEqual(isSigned ? [transfer, dated] : [transfer])
    expect(service.enclave.dropped).toEqual(isSigned ? [] : [dated])
  })
})

describe('two requests for the same digest', () => {
  const winner = { signature: `0x${'77'.repeat(65)}`, slug: 'AAAAAAAAAAAAAAAAAAAAAA' } as const
  function createLoser() {
    const service = createLoggedService()
    const { walletId, content } = createTransfer(0)
    service.logService.claims.set(`${walletId} ${content.digest}`, 'another leaf')
    return service
  }

  test('the later one gets the other’s stored signature, and its own is dropped', async () => {
    const service = createLoser()
    service.found.push(undefined, undefined, winner)
    const { over, settled, outcomes } = service.start([createTransfer(0), createTransfer(1)])
    await expect.poll(() => outcomes()[1]).toBe('signed')
    for (let poll = 0; poll < 2; poll++) {
      await settleDown()
      service.time.pass(50)
    }
    await over
    expect(settled()[0]).toEqual({ status: 'fulfilled', value: winner })
    const [lost, own] = leavesOf(service)
    expect(service.enclave.asked()).toEqual([own])
    expect(service.enclave.dropped).toEqual([lost])
    expect(service.logService.givenUp).toEqual([])
  })

  test.each([
    ['if none is stored within 3 s', undefined],
    ['where the database does not answer', () => new Promise<never>(() => {})],
  ])('reports it %s', async (_, findSigned) => {
    const service = createLoser()
    if (findSigned !== undefined) service.finder.findSigned = findSigned
    const { over, outcomes } = service.start([createTransfer(0)])
    for (let poll = 0; poll < 60; poll++) {
      await settleDown()
      service.time.pass(50)
    }
    await over
    expect(outcomes()).toEqual(['log_unavailable'])
    expect(service.enclave.asked()).toEqual([])
  })

  test('through two coordinators at once: one signature is stored, and both return it', async () => {
    const logService = createFakeLogService()
    const first = createLoggedService({ logService })
    const second = createLoggedService({ logService, store: first.store })
    for (const { finder } of [first, second]) finder.findSigned = first.store.findSigned
    const runs = [first, second].map(({ start }) => start([createTransfer(0)]))
    await expect
      .poll(() => {
        for (const { time } of [first, second]) time.pass(50)
        return runs.flatMap(({ outcomes }) => outcomes())
      })
      .toEqual(['signed', 'signed'])
    const [slug] = first.store.rows.proofs.keys()
    expect(first.store.rows.proofs.size).toBe(1)
    expect(first.enclave.asked().length + second.enclave.asked().length).toBe(1)
    for (const { settled } of runs) expect(settled()).toMatchObject([{ value: { slug } }])
  })
})

describe('payments from budgets', () => {
  const agent = createAgent(9)
  const policyLog = { origin: ORIGIN, witnesses: witnessKeys, quorum: 2 }
  const jobOf = (job: SignJob, log: typeof policyLog = policyLog) =>
    ({ ...job, sid: undefined, grant: undefined, owner: '0e'.repeat(32), vault: vaultOf(log) }) as SignJob
  const vaultOf = (log: typeof policyLog) => {
    const rule = { kind: 'spend', chainIds: [1], payees: 'any', forms: ['coin'], session: false } as const
    const rules = createPolicy({
      version: 1,
      log,
      approvers: [agent.approver],
      budgets: [{ chainId: 1, token: null, limit: '9', periodS: 3_600 }],
      rules: [{ ...rule, approvals: 1, approvers: [0] }],
    })
    const text = Buffer.from(toPolicyBytes(rules)).toString()
    const policy = { hash: toHex(hashPolicy(rules)), text }
    return { policy, rules, rule: 0, approvals: [{ approver: 0, expiresMs: 1, signature: '77'.repeat(64) }] }
  }
  const createPayment = (nonce: number, log?: typeof policyLog) =>
    jobOf(createTransfer(nonce, { wallet: vaultKey }), log)
  const isPayment = ({ owner }: SignItem) => owner !== undefined
  const error = (code: 'budget_time' | 'budget_unavailable') => ({ error: code }) as const

  test('go to the boot that writes their log, with the owner in place of a session; others to any boot', async () => {
    const service = createLoggedService()
    const items: SignItem[] = []
    service.enclave.refuse = (item) => void items.push(item)
    expect(await service.sign(createTransfer(0), createPayment(1), createPayment(2))).toEqual(Array(3).fill('signed'))
    expect(service.enclave.boots).toEqual([undefined, TEST_BOOT])
    const owner = '0e'.repeat(32)
    expect(items).toMatchObject([{ grant: 'grant' }, { owner }, { owner }])
    for (const item of items.slice(1)) for (const name of ['sid', 'grant']) expect(item).not.toHaveProperty(name)
  })

  test('fail with budget_unavailable and spend no sample while no enclave has their log open; others are signed', async () => {
    const service = createLoggedService()
    const elsewhere = { ...policyLog, origin: 'log.example/other' }
    expect(await service.sign(createPayment(0, elsewhere), createTransfer(1))).toEqual(['budget_unavailable', 'signed'])
    expect(service.entropy.taken).toBe(1)
    service.logService.boots.clear()
    expect(await service.sign(createPayment(2))).toEqual(['budget_unavailable'])
    expect(service.entropy.taken).toBe(1)
  })

  test('are sent again once after the enclave has seen recent cosignatures of the policy’s witnesses', async () => {
    const service = createLoggedService()
    const seen = () => service.enclave.requests.some(({ leaves = [], checkpoint }) => checkpoint && leaves.length === 0)
    service.enclave.refuse = (item) => (isPayment(item) && !seen() ? error('budget_time') : undefined)
    expect(await service.sign(createPayment(0), createTransfer(1))).toEqual(['signed', 'signed'])
    expect(service.logService.cosigns).toContainEqual({ origin: ORIGIN, size: 0, needs: [policyLog], maxAgeMs: 30_000 })
    expect(service.enclave.boots).toEqual([TEST_BOOT, undefined, TEST_BOOT])
  })

  test.each([
    ['the enclave still lacks the time', async () => {}],
    [
      'the witnesses do not cosign',
      async ({ maxAgeMs }: { maxAgeMs?: number | undefined }) => {
        if (maxAgeMs !== undefined) throw unavailable()
      },
    ],
  ])('fail with budget_time if %s, and delay no other request', async (_, beforeCosign) => {
    const service = createLoggedService()
    service.logService.beforeCosign = beforeCosign
    service.enclave.refuse = (item) => (isPayment(item) ? error('budget_time') : undefined)
    expect(await service.sign(createPayment(0), createTransfer(1))).toEqual(['budget_time', 'signed'])
    expect(service.enclave.boots.filter((bootId) => bootId !== undefined).length).toBeLessThanOrEqual(2)
    expect(leavesOf(service)).toHaveLength(1)
  })

  test('fail alone if the enclave cannot count them', async () => {
    const service = createLoggedService()
    service.enclave.refuse = (item) => (isPayment(item) ? error('budget_unavailable') : undefined)
    expect(await service.sign(createPayment(0), createTransfer(1))).toEqual(['budget_unavailable', 'signed'])
  })

  test('a statement that names a session is not accepted for a request without one, or the other way', async () => {
    for (const [job, session] of [
      [createPayment(0), 'cookie'],
      [createTransfer(1), 'none'],
    ] as const) {
      const service = createLoggedService()
      service.signing.stateV2 = (signed) => ({ ...signed, statement: { ...signed.statement, session } })
      expect(await service.sign(job)).toEqual(['attestation_invalid'])
    }
  })

  test('a revocation goes there too, and is stored with its approvals', async () => {
    const service = createLoggedService()
    const { vault, ...job } = createPayment(0)
    const { rule: _, ...use } = vault ?? vaultOf(policyLog)
    const key = agent.approver.publicKey
    const subject = { address: vaultKey.address, policy: use.policy.hash, key }
    const digest = toEventHash({ kind: 'revocation', subject })
    const revocation = { ...job, vault: use, content: { kind: 'revocation', key, digest } } as SignJob
    expect(await service.sign(revocation)).toEqual(['signed'])
    expect(service.enclave.boots).toEqual([TEST_BOOT])
    const [stored] = service.inserted[0]?.signings ?? []
    expect(stored).toMatchObject({ signed: { kind: 'revocation', subject }, approvals: use.approvals })
    expect([...service.store.rows.signed.values()]).toMatchObject([{ digest, signature: null }])
    service.logService.boots.clear()
    expect(await service.sign(revocation)).toEqual(['budget_unavailable'])
  })
})

describe('a vault with its own witnesses', () => {
  const need = { witnesses: witnessKeys.slice(0, 1), quorum: 1 }

  test('waits for them; requests without this rule do not', async () => {
    const service = createLoggedService()
    const missing = Promise.withResolvers<void>()
    service.logService.beforeCosign = async ({ needs }) => {
      if (needs !== undefined) await missing.promise
    }
    const { over, outcomes } = service.start([
      createTransfer(0),
      createVaultTransfer(1, need),
      createVaultTransfer(2, null),
    ])
    await expect.poll(() => outcomes()).toEqual(['signed', undefined, 'signed'])
    expect(service.logService.cosigns.map(({ needs }) => needs)).toEqual([undefined, [need]])
    expect(service.enclave.asked()).toHaveLength(2)
    missing.resolve()
    await over
    expect(outcomes()).toEqual(Array(3).fill('signed'))
  })

  test('only its requests fail if they do not cosign', async () => {
    const service = createLoggedService()
    service.logService.beforeCosign = async ({ needs }) => {
      if (needs !== undefined) throw unavailable()
    }
    expect(await service.sign(createVaultTransfer(0, need), createTransfer(1))).toEqual(['log_unavailable', 'signed'])
    await settleDown()
    expect(service.enclave.dropped).toEqual(leavesOf(service).slice(0, 1))
  })
})
