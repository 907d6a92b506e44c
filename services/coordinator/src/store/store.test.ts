import { hash } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createTestBatch,
  createTestSession,
  createTestSigning,
  createTestUser,
  createTestWallet,
  createTestWitness,
  NOW,
  openStore,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import type { Login } from './logins.ts'

const IDLE_MS = 7_200_000

describe('the store', () => {
  let subject: TestStore
  beforeAll(async () => {
    subject = await startTestStore()
  })
  afterAll(() => subject.stop())

  const createLogin = async (changes: Partial<Login> = {}) => {
    const login: Login = {
      id: randomHex(8),
      provider: 'google',
      stateHash: randomHex(32),
      codeVerifier: 'verifier',
      nonce: 'nonce',
      clientKey: undefined,
      returnTo: 'https://app.example/',
      expiresAt: NOW + 600_000,
      ...changes,
    }
    await subject.store.createLogin(login)
    return login
  }

  describe('logins', () => {
    test('one of 20 concurrent callbacks consumes the login', async () => {
      const login = await createLogin()
      const takes = Array.from({ length: 20 }, () => subject.store.consumeLogin({ ...login, now: NOW }))
      const taken = (await Promise.all(takes)).filter((answer) => answer !== undefined)
      expect(taken).toEqual([login])
    })

    test('a wrong state consumes nothing', async () => {
      const login = await createLogin()
      const wrong = { id: login.id, stateHash: randomHex(32), now: NOW }
      expect(await subject.store.consumeLogin(wrong)).toBeUndefined()
      expect(await subject.store.consumeLogin({ ...login, now: NOW })).toEqual(login)
    })

    test('a login expires to the millisecond', async () => {
      const late = await createLogin()
      expect(await subject.store.consumeLogin({ ...late, now: late.expiresAt })).toBeUndefined()
      const inTime = await createLogin()
      expect(await subject.store.consumeLogin({ ...inTime, now: inTime.expiresAt - 1 })).toEqual(inTime)
    })
  })

  describe('users', () => {
    test('issuer and subject identify a user; address and name follow the latest sign-in', async () => {
      const user = createTestUser()
      const first = await subject.store.upsertUser(user)
      const again = await subject.store.upsertUser({ ...user, email: 'other@example.org', name: null, now: NOW + 1 })
      expect(again).toEqual({ ...first, email: 'other@example.org', name: null })
      const elsewhere = await subject.store.upsertUser({ ...user, issuer: 'https://other.example' })
      expect(elsewhere.id).not.toBe(first.id)
    })

    test('rejects a changed key without changing anything else', async () => {
      const user = createTestUser()
      await subject.store.upsertUser(user)
      await expect(
        subject.store.upsertUser({ ...user, email: 'thief@example.org', kmsKeyId: randomHex(16) }),
      ).rejects.toMatchObject({ code: 'key_binding_mismatch' })
      const { rows } = await sql`select email from users where subject = ${user.subject}`.execute(subject.database.db)
      expect(rows).toEqual([{ email: user.email }])
    })

    test('20 concurrent first sign-ins create one user', async () => {
      const user = createTestUser()
      const users = await Promise.all(Array.from({ length: 20 }, () => subject.store.upsertUser(user)))
      expect(new Set(users.map(({ id }) => id)).size).toBe(1)
    })
  })

  describe('sessions', () => {
    const createSession = async (changes = {}) => {
      const user = await subject.store.upsertUser(createTestUser())
      const session = createTestSession(user, changes)
      await subject.store.createSession(session)
      const find = (now: number) => subject.store.findSession({ sidHash: session.sidHash, now, idleMs: IDLE_MS })
      return { user, session, find }
    }
    const readLastSeen = async (sidHash: string) => {
      const query = subject.database.db.selectFrom('sessions').where('sid_hash', '=', Buffer.from(sidHash, 'hex'))
      return (await query.select('last_seen_at').executeTakeFirstOrThrow()).last_seen_at.getTime()
    }

    test('returns a session with its user', async () => {
      const { user, session, find } = await createSession()
      expect(await find(NOW)).toEqual({ session, user })
    })

    test('marks it as used once a minute, never back in time', async () => {
      const { session, find } = await createSession()
      await find(NOW + 59_999)
      expect(await readLastSeen(session.sidHash)).toBe(NOW)
      expect(await find(NOW + 60_000)).toMatchObject({ session: { lastSeenAt: NOW + 60_000 } })
      expect(await readLastSeen(session.sidHash)).toBe(NOW + 60_000)
      await find(NOW + 1)
      expect(await readLastSeen(session.sidHash)).toBe(NOW + 60_000)
    })

    test('ends it when idle, and reading it then does not revive it', async () => {
      const { find } = await createSession()
      expect(await find(NOW + IDLE_MS)).toBe('expired')
      expect(await find(NOW + IDLE_MS)).toBe('expired')
      const other = await createSession()
      expect(await other.find(NOW + IDLE_MS - 1)).toMatchObject({ session: { lastSeenAt: NOW + IDLE_MS - 1 } })
      expect(await other.find(NOW + IDLE_MS)).not.toBe('expired')
    })

    test('ends it at its maximum age, even if it is used', async () => {
      const { session, find } = await createSession({ expiresAt: NOW + 1000 })
      expect(await find(session.expiresAt - 1)).toMatchObject({ session })
      expect(await find(session.expiresAt)).toBe('expired')
    })

    test('deletes a session once, and says whether there was one', async () => {
      const { session, find } = await createSession()
      expect(await subject.store.deleteSession(session.sidHash)).toBe(true)
      expect(await subject.store.deleteSession(session.sidHash)).toBe(false)
      expect(await find(NOW)).toBeUndefined()
    })

    test('rejects a session of an unknown user', async () => {
      const user = { ...createTestUser(), id: '00000000-0000-4000-8000-000000000000' }
      await expect(subject.store.createSession(createTestSession(user))).rejects.toMatchObject({ code: '23503' })
    })
  })

  describe('wallets', () => {
    test('50 concurrent calls create one wallet with one provenance', async () => {
      const user = await subject.store.upsertUser(createTestUser())
      const address = `0x${randomHex(20)}` as const
      const calls = Array.from({ length: 50 }, () => ({ address, witness: createTestWitness() }))
      const wallets = await Promise.all(
        calls.map((call) =>
          subject.store.createWallet({ ...call, userId: user.id, kmsKeyId: user.kmsKeyId, now: NOW }),
        ),
      )
      for (const wallet of wallets) expect(wallet).toEqual(wallets[0])
      expect(await subject.store.findWallet(user.id)).toEqual(wallets[0])
      expect(calls.map(({ witness }) => witness.signatureHex)).toContain(wallets[0]?.provenance.entropySig)
    })

    test('the provenance has the sample’s hash, signature and source', async () => {
      const user = await subject.store.upsertUser(createTestUser())
      const witness = createTestWitness()
      const address = `0x${randomHex(20)}` as const
      const parameters = { userId: user.id, address, kmsKeyId: user.kmsKeyId, witness, now: NOW }
      expect(await subject.store.createWallet(parameters)).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        userId: user.id,
        address,
        kmsKeyId: user.kmsKeyId,
        createdAt: NOW,
        provenance: {
          entropyHash: hash('sha256', Buffer.from(witness.valueHex, 'hex')),
          entropySig: witness.signatureHex,
          satelliteSource: witness.source,
        },
      })
    })

    test('rejects another key or address than the stored one', async () => {
      const wallet = await createTestWallet(subject.store)
      const same = { ...wallet, witness: createTestWitness(), now: NOW }
      for (const change of [{ kmsKeyId: randomHex(16) }, { address: `0x${randomHex(20)}` as const }]) {
        await expect(subject.store.createWallet({ ...same, ...change })).rejects.toMatchObject({
          code: 'key_binding_mismatch',
        })
      }
    })

    test('rejects a wallet without a user', async () => {
      const userId = '00000000-0000-4000-8000-000000000000'
      expect(await subject.store.findWallet(userId)).toBeUndefined()
      const wallet = await createTestWallet(subject.store)
      const parameters = { ...wallet, userId, witness: createTestWitness(), now: NOW }
      await expect(subject.store.createWallet(parameters)).rejects.toMatchObject({ code: 'key_binding_mismatch' })
    })

    test('detects swapped keys of two users everywhere', async () => {
      const { store, database } = subject
      const people = [createTestUser(), createTestUser()]
      const users = await Promise.all(people.map((person) => store.upsertUser(person)))
      const [first, second] = users
      const person = people[0]
      if (!first || !second || !person) throw new Error('two users')
      const address = `0x${randomHex(20)}` as const
      const parameters = { userId: first.id, address, kmsKeyId: first.kmsKeyId, witness: createTestWitness(), now: NOW }
      await store.createWallet(parameters)
      const session = createTestSession(first)
      await store.createSession(session)
      await sql`
        update users set kms_key_id = case id when ${first.id}::uuid then ${Buffer.from(second.kmsKeyId, 'hex')}::bytea
          else ${Buffer.from(first.kmsKeyId, 'hex')}::bytea end
        where id in (${first.id}::uuid, ${second.id}::uuid)`.execute(database.db)
      const refusal = { code: 'key_binding_mismatch' }
      await expect(store.upsertUser(person)).rejects.toMatchObject(refusal)
      await expect(store.findWallet(first.id)).rejects.toMatchObject(refusal)
      await expect(store.createWallet(parameters)).rejects.toMatchObject(refusal)
      await expect(store.createWallet({ ...parameters, kmsKeyId: second.kmsKeyId })).rejects.toMatchObject(refusal)
      await expect(store.findSession({ ...session, now: NOW, idleMs: IDLE_MS })).rejects.toMatchObject(refusal)
    })
  })

  describe('entropy samples', () => {
    test('claims a sample once, even within one call', async () => {
      const [first, second] = [createTestWitness(), createTestWitness()]
      expect(await subject.store.claimSamples([first, first], NOW)).toEqual([first])
      expect(await subject.store.claimSamples([first, second], NOW)).toEqual([second])
      expect(await subject.store.claimSamples([first, second], NOW)).toEqual([])
      expect(await subject.store.claimSamples([], NOW)).toEqual([])
    })

    test('only the value counts, not the signer', async () => {
      const witness = createTestWitness()
      await subject.store.claimSamples([witness], NOW)
      expect(await subject.store.claimSamples([{ ...witness, signatureHex: randomHex(64), sequence: 9 }], NOW)).toEqual(
        [],
      )
    })

    test('20 concurrent claims of the same 64 samples get different ones', async () => {
      const witnesses = Array.from({ length: 64 }, createTestWitness)
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          subject.store.claimSamples(index % 2 === 0 ? witnesses : witnesses.toReversed(), NOW),
        ),
      )
      expect(claims.flat()).toHaveLength(64)
      expect(new Set(claims.flat()).size).toBe(64)
    })

    test('two coordinators on one database get different ones', async () => {
      const other = await openStore(subject.options)
      try {
        const witnesses = Array.from({ length: 256 }, createTestWitness)
        const claims = await Promise.all([
          subject.store.claimSamples(witnesses, NOW),
          other.claimSamples(witnesses.toReversed(), NOW),
        ])
        expect(new Set(claims.flat().map(({ valueHex }) => valueHex)).size).toBe(256)
        expect(claims.flat()).toHaveLength(256)
      } finally {
        await other.close()
      }
    })
  })

  test('a dump of the database contains no session secret', async () => {
    const { store, database } = subject
    const sid = randomHex(32)
    const user = await store.upsertUser(createTestUser())
    const session = createTestSession(user, { sidHash: hash('sha256', Buffer.from(sid, 'hex')) })
    await store.createSession(session)
    const wallet = await store.createWallet({
      userId: user.id,
      address: session.address,
      kmsKeyId: user.kmsKeyId,
      witness: createTestWitness(),
      now: NOW,
    })
    await store.insertSignings({ batch: createTestBatch(), signings: [createTestSigning(wallet)], now: NOW })
    const tables = await sql<{ name: string }>`
      select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`.execute(database.db)
    let dump = ''
    for (const { name } of tables.rows) {
      const { rows } = await sql<{ row: string }>`select t::text as row from ${sql.raw(name)} as t`.execute(database.db)
      dump += rows.map(({ row }) => row).join('\n')
    }
    expect(dump).toContain(session.sidHash)
    for (const encoding of ['hex', 'base64', 'base64url', 'latin1'] as const) {
      expect(dump).not.toContain(Buffer.from(sid, 'hex').toString(encoding))
    }
  })

  test('ping succeeds while the database is available', async () => {
    await subject.store.ping()
  })
})
