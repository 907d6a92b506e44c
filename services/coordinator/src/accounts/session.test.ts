import { expect, test } from 'vitest'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { FoundSigner } from '../store/signers.ts'
import { createSignerFinder } from './session.ts'

const DIGEST = `0x${'ab'.repeat(32)}` as const
const SID = '11'.repeat(32)
const signer = {
  userId: 'user',
  grant: 'grant',
  isBound: false,
  owner: { salt: '', identity: { issuer: '', subject: '', email: null } },
  keyId: '22'.repeat(16),
  address: `0x${'33'.repeat(20)}`,
  walletId: 'wallet',
  signed: undefined,
} as const

function create(findSigners: Store['findSigners']) {
  return createSignerFinder({ store: { findSigners }, clock: { now: () => 5 }, sessionIdleMs: 7, slots: () => 2 })
}

test('requests in one turn share one lookup, by the hashes of their secrets', async () => {
  const lookups: Parameters<Store['findSigners']>[0][] = []
  const finder = create(async (parameters) => {
    lookups.push(parameters)
    return parameters.queries.map(() => signer)
  })
  const [first, second] = await Promise.all([
    finder.find({ sid: SID, digest: DIGEST }),
    finder.find({ sid: SID, digest: DIGEST }),
  ])
  expect([first, second]).toEqual([
    { sid: SID, ...signer },
    { sid: SID, ...signer },
  ])
  expect(lookups).toHaveLength(1)
  expect(lookups[0]).toMatchObject({ now: 5, idleMs: 7 })
  expect(JSON.stringify(lookups)).not.toContain(SID)
})

test('an equal request does not join a running lookup, because a sign-out may have come between', async () => {
  const answers: ((found: FoundSigner[]) => void)[] = []
  const finder = create(() => new Promise((resolve) => answers.push(resolve)))
  const first = finder.find({ sid: SID, digest: DIGEST })
  await new Promise((resolve) => setImmediate(resolve))
  const second = finder.find({ sid: SID, digest: DIGEST })
  await new Promise((resolve) => setImmediate(resolve))
  expect(answers).toHaveLength(2)
  answers[0]?.([signer])
  answers[1]?.([undefined])
  expect((await first).userId).toBe('user')
  await expect(second).rejects.toMatchObject({ code: 'not_authenticated' })
})

test.each<[FoundSigner, string]>([
  [undefined, 'not_authenticated'],
  ['expired', 'session_expired'],
  ['key_binding_mismatch', 'key_binding_mismatch'],
])('%s is %s', async (found, code) => {
  await expect(create(async () => [found]).find({ sid: SID, digest: DIGEST })).rejects.toMatchObject({ code })
})

test('makes no lookup without a secret', async () => {
  const finder = create(async () => Promise.reject(new Error('queries')))
  await expect(finder.find({ sid: undefined, digest: DIGEST })).rejects.toMatchObject({ code: 'not_authenticated' })
})

test('returns database_unavailable if the database is down', async () => {
  const error = new CoordinatorError('database_unavailable', 'away')
  await expect(create(async () => Promise.reject(error)).find({ sid: SID, digest: DIGEST })).rejects.toBe(error)
})
