import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createTestBatch,
  createTestSession,
  createTestSigning,
  createTestUser,
  createTestWitness,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'

const IDLE_MS = 7_200_000
const DIGEST = `0x${'ab'.repeat(32)}` as const

describe('signers', () => {
  let subject: TestStore
  beforeAll(async () => {
    subject = await startTestStore()
  })
  afterAll(() => subject.stop())

  async function createSigner({ hasWallet = true, expiresAt = NOW + 43_200_000 } = {}) {
    const { store } = subject
    const user = await store.upsertUser(createTestUser())
    const session = createTestSession(user, { expiresAt })
    await store.createSession(session)
    const { address, keyId: kmsKeyId } = session
    const wallet = hasWallet
      ? await store.createWallet({ userId: user.id, address, kmsKeyId, witness: createTestWitness(), now: NOW })
      : undefined
    const { grant, owner } = session
    const signer = { userId: user.id, grant, isBound: false, owner, keyId: kmsKeyId, address, walletId: wallet?.id }
    return { user, session, wallet, signer, asked: { sidHash: session.sidHash, digest: DIGEST } }
  }
  const find = (asked: readonly { sidHash: string; digest: `0x${string}` }[], now = NOW) =>
    subject.store.findSigners({ queries: asked, now, idleMs: IDLE_MS })

  test('returns each query in its place: known, unknown, expired, without a wallet, and known again', async () => {
    const [known, expired, bare] = [
      await createSigner(),
      await createSigner({ expiresAt: NOW }),
      await createSigner({ hasWallet: false }),
    ]
    const unknown = { sidHash: randomHex(32), digest: DIGEST }
    expect(await find([known.asked, unknown, expired.asked, bare.asked, known.asked])).toEqual([
      { ...known.signer, signed: undefined },
      undefined,
      'expired',
      { ...bare.signer, signed: undefined },
      { ...known.signer, signed: undefined },
    ])
  })

  test('returns the earlier signature of this wallet, not of another one, for the digest', async () => {
    const [first, second] = [await createSigner(), await createSigner()]
    if (first.wallet === undefined) throw new Error('no wallet')
    const signing = createTestSigning(first.wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    const { digest, signature } = signing.statement
    const found = await find([{ ...first.asked, digest }, { ...second.asked, digest }, first.asked])
    expect(found.map((one) => (typeof one === 'object' ? one.signed : one))).toEqual([
      { signature, slug: signing.slug },
      undefined,
      undefined,
    ])
  })

  test('marks a session as used once a minute, and ends it when idle', async () => {
    const { asked, session } = await createSigner()
    const readLastSeen = async () => {
      const found = await subject.store.findSession({ sidHash: session.sidHash, now: NOW, idleMs: IDLE_MS })
      return typeof found === 'object' ? found.session.lastSeenAt : found
    }
    await find([asked, asked], NOW + 59_999)
    expect(await readLastSeen()).toBe(NOW)
    await find([asked, asked], NOW + 60_000)
    expect(await readLastSeen()).toBe(NOW + 60_000)
    expect(await find([asked], NOW + 60_000 + IDLE_MS)).toEqual(['expired'])
  })

  test('leaves sessions that another call is marking to it, so that calls never deadlock', async () => {
    const [held, free] = [await createSigner(), await createSigner()]
    const readLastSeen = async ({ session }: typeof held) => {
      const { rows } = await sql<{ last_seen_at: Date }>`select last_seen_at from sessions
        where sid_hash = ${Buffer.from(session.sidHash, 'hex')}`.execute(subject.database.db)
      return rows[0]?.last_seen_at.getTime()
    }
    await subject.database.db.transaction().execute(async (other) => {
      await sql`select 1 from sessions where sid_hash = ${Buffer.from(held.session.sidHash, 'hex')} for update`.execute(
        other,
      )
      expect(await find([held.asked, free.asked], NOW + 60_000)).toEqual([
        { ...held.signer, signed: undefined },
        { ...free.signer, signed: undefined },
      ])
      expect([await readLastSeen(held), await readLastSeen(free)]).toEqual([NOW, NOW + 60_000])
    })
    await find([held.asked], NOW + 60_000)
    expect(await readLastSeen(held)).toBe(NOW + 60_000)
  })

  test('rejects only users whose keys were swapped', async () => {
    const [first, second, third] = [await createSigner(), await createSigner(), await createSigner()]
    await sql`update users set kms_key_id = ${Buffer.from(second.user.kmsKeyId, 'hex')} where id = ${first.user.id}`.execute(
      subject.database.db,
    )
    expect(await find([first.asked, third.asked])).toEqual([
      'key_binding_mismatch',
      { ...third.signer, signed: undefined },
    ])
  })
})
