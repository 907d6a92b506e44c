import { hash } from 'node:crypto'
import { toEventHash } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createTestBatch,
  createTestRelease,
  createTestSession,
  createTestSigningV2,
  createTestUser,
  createTestWitness,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { createPinningStore, type PinningStore } from './pinning.ts'
import type { StoredPolicy } from './vaults.ts'

const IDLE_MS = 7_200_000
const withCode = (code: string) => expect.objectContaining({ code })

describe('vaults', () => {
  let subject: TestStore
  let pinning: PinningStore
  beforeAll(async () => {
    subject = await startTestStore()
    pinning = createPinningStore({ db: subject.database.db, jobs: subject.jobs })
  })
  afterAll(() => subject.stop())

  const createPolicy = (text = `{"rules":"${randomHex(8)}"}`): StoredPolicy => ({ hash: hash('sha256', text), text })
  const createVaultOf = (userId: string, changes: { policy?: StoredPolicy; limit?: number | null } = {}) => ({
    userId,
    address: `0x${randomHex(20)}` as const,
    kmsKeyId: randomHex(16),
    policy: createPolicy(),
    limit: 100,
    now: NOW,
    ...changes,
  })
  async function createOwner() {
    const user = await subject.store.upsertUser(createTestUser())
    const session = createTestSession(user)
    await subject.store.createSession(session)
    const { address, keyId: kmsKeyId } = session
    const wallet = { userId: user.id, address, kmsKeyId, witness: createTestWitness(), now: NOW }
    return { user, session, wallet: await subject.store.createWallet(wallet) }
  }
  const complete = ({ hash }: StoredPolicy) => pinning.completePolicy({ hash, now: NOW })
  const countJobs = async ({ hash }: StoredPolicy) => {
    const found = await sql<{ count: number }>`
      select count(*)::int4 as count from pgboss.job where name = 'policy' and data ->> 'hash' = ${hash}`.execute(
      subject.database.db,
    )
    return found.rows[0]?.count
  }

  test('stores a vault with a job that pins its policy, and lists it once it is pinned', async () => {
    const { user } = await createOwner()
    const asked = createVaultOf(user.id)
    const vault = await subject.store.createVault(asked)
    const { limit: _, now, ...rest } = asked
    expect(vault).toEqual({ ...rest, id: vault.id, createdAt: now, isPinned: false })
    expect(await countJobs(asked.policy)).toBe(1)
    expect(await subject.store.listVaults(user.id)).toEqual([])
    expect(Buffer.from((await pinning.findPolicy(asked.policy.hash)) ?? []).toString()).toBe(asked.policy.text)
    await complete(asked.policy)
    expect(await pinning.findPolicy(asked.policy.hash)).toBeUndefined()
    expect(await subject.store.listVaults(user.id)).toEqual([{ ...vault, isPinned: true }])
    expect(await subject.store.createVault(asked)).toEqual({ ...vault, isPinned: true })
    expect(await countJobs(asked.policy)).toBe(1)
  })

  test('finds a pinned vault by its address, with its owner as the enclave names them, and no wallet', async () => {
    const { user, wallet } = await createOwner()
    const asked = createVaultOf(user.id)
    const vault = await subject.store.createVault(asked)
    expect(await subject.store.findVaultAt(asked.address)).toBeUndefined()
    await complete(asked.policy)
    const owner = hash('sha256', `${user.issuer}\0${user.subject}`, 'hex')
    expect(await subject.store.findVaultAt(asked.address)).toEqual({ ...vault, isPinned: true, owner })
    for (const other of [wallet.address, `0x${randomHex(20)}` as const]) {
      expect(await subject.store.findVaultAt(other)).toBeUndefined()
    }
  })

  test('stores a revocation once per key, with its approvals, and finds it by its digest', async () => {
    const { user, wallet } = await createOwner()
    const vault = await subject.store.createVault(createVaultOf(user.id))
    const { provenance } = wallet
    const signed = {
      kind: 'revocation',
      subject: { address: vault.address, policy: vault.policy.hash, key: randomHex(32) },
    } as const
    const digest = toEventHash(signed)
    const insert = async (slug: string) => {
      const signing = { ...createTestSigningV2({ ...vault, provenance }, signed), slug, approvals: [] }
      const batch = createTestBatch({ release: createTestRelease(signing.statement.coordinatorKey) })
      return subject.store.insertSignings({ batch, signings: [signing], now: NOW })
    }
    const slug = randomHex(11)
    const stored = [{ walletId: vault.id, digest, signature: null, slug }]
    expect(await insert(slug)).toEqual(stored)
    expect(await insert(randomHex(11))).toEqual(stored)
    expect(await subject.store.findSigned([{ walletId: vault.id, digest }])).toEqual(stored)
    expect(await subject.store.findProof(slug)).toMatchObject({ kind: 'revocation', txHash: digest, chainId: 0 })
    const [summary] = await subject.store.listTransactions({ userId: user.id, limit: 1, before: undefined })
    expect(summary).toMatchObject({ kind: 'revocation', walletAddress: vault.address })
  })

  test('the user’s own wallet stays separate', async () => {
    const { user, wallet } = await createOwner()
    await subject.store.createVault(createVaultOf(user.id))
    expect(await subject.store.findWallet(user.id)).toEqual(wallet)
    const { address, kmsKeyId } = wallet
    const again = { userId: user.id, address, kmsKeyId, witness: createTestWitness(), now: NOW }
    expect(await subject.store.createWallet(again)).toEqual(wallet)
  })

  test('two users may have the same policy, each with a separate vault', async () => {
    const [first, second] = [await createOwner(), await createOwner()]
    const policy = createPolicy()
    const vaults = [
      await subject.store.createVault(createVaultOf(first.user.id, { policy })),
      await subject.store.createVault(createVaultOf(second.user.id, { policy })),
    ]
    expect(new Set(vaults.map(({ id }) => id)).size).toBe(2)
  })

  test('rejects a policy with another key', async () => {
    const { user } = await createOwner()
    const asked = createVaultOf(user.id)
    await subject.store.createVault(asked)
    const other = { ...asked, address: `0x${randomHex(20)}` as const }
    await expect(subject.store.createVault(other)).rejects.toEqual(withCode('key_binding_mismatch'))
  })

  test('concurrent calls do not exceed the limit, and existing vaults are still returned', async () => {
    const { user } = await createOwner()
    const asked = Array.from({ length: 6 }, () => createVaultOf(user.id, { limit: 3 }))
    const settled = await Promise.allSettled(asked.map((one) => subject.store.createVault(one)))
    const made = settled.flatMap((result, index) => (result.status === 'fulfilled' ? (asked[index] ?? []) : []))
    const refused = settled.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
    expect([made.length, refused]).toEqual([3, Array(3).fill('too_many_vaults')])
    for (const one of made) expect(await subject.store.createVault(one)).toMatchObject({ address: one.address })
  })

  test('restores an earlier vault above the limit, which then counts for the next new one', async () => {
    const { user } = await createOwner()
    await subject.store.createVault(createVaultOf(user.id, { limit: 1 }))
    const before = createVaultOf(user.id, { limit: null })
    expect(await subject.store.createVault(before)).toMatchObject({ address: before.address })
    const next = createVaultOf(user.id, { limit: 2 })
    await expect(subject.store.createVault(next)).rejects.toEqual(withCode('too_many_vaults'))
  })

  test('signers: the own wallet with or without its address, a vault by its address once its policy is pinned', async () => {
    const [owner, stranger] = [await createOwner(), await createOwner()]
    const asked = createVaultOf(owner.user.id)
    const { id: walletId, address, kmsKeyId: keyId, policy } = await subject.store.createVault(asked)
    const find = async (sidHash: string, wallet?: `0x${string}`) =>
      (
        await subject.store.findSigners({
          queries: [{ sidHash, digest: undefined, wallet }],
          now: NOW,
          idleMs: IDLE_MS,
        })
      )[0]
    const { sidHash, grant } = owner.session
    expect(await find(sidHash, address)).toBe('vault_not_found')
    await complete(policy)
    const own = {
      userId: owner.user.id,
      grant,
      isBound: false,
      owner: owner.session.owner,
      keyId: owner.wallet.kmsKeyId,
      address: owner.wallet.address,
    }
    expect(await find(sidHash)).toEqual({ ...own, walletId: owner.wallet.id, signed: undefined })
    expect(await find(sidHash, own.address)).toEqual({ ...own, walletId: owner.wallet.id, signed: undefined })
    expect(await find(sidHash, address)).toEqual({ ...own, keyId, address, walletId, policy, signed: undefined })
    expect(await find(stranger.session.sidHash, address)).toBe('vault_not_found')
    expect(await find(sidHash, `0x${randomHex(20)}`)).toBe('vault_not_found')
  })

  test('a vault’s signature is in its user’s list with its address, counts for the user, and keeps its approvals', async () => {
    const { user, wallet, session } = await createOwner()
    const vault = await subject.store.createVault(createVaultOf(user.id))
    await complete(vault.policy)
    const stated = {
      kind: 'address',
      subject: { address: vault.address, policy: vault.policy.hash, owner: randomHex(32) },
    } as const
    const provenance = wallet.provenance
    const ofVault = createTestSigningV2({ ...vault, provenance }, stated)
    const { coordinatorKey } = ofVault.statement
    const bare = createTestSigningV2(wallet)
    const ofOwn = { ...bare, statement: { ...bare.statement, coordinatorKey } }
    const approvals = [{ approver: 0, authenticatorData: '', clientDataJSON: '', signature: '', expiresMs: 1 }]
    const policy = vault.policy.hash
    const batch = createTestBatch({ release: createTestRelease(coordinatorKey) })
    const insert = (signing: typeof ofVault, now: number) =>
      subject.store.insertSignings({ batch, signings: [signing], now })
    await insert(ofOwn, NOW)
    const first = await insert({ ...ofVault, approvals, statement: { ...ofVault.statement, policy } }, NOW + 1)
    expect(first).toMatchObject([{ walletId: vault.id, signature: null, slug: ofVault.slug }])
    // One per wallet: the second call finds the first.
    expect(await insert({ ...ofVault, slug: 'another-slug-00000000A' }, NOW + 2)).toEqual(first)
    const list = await subject.store.listTransactions({ userId: user.id, limit: 10, before: undefined })
    expect(list).toMatchObject([
      { slug: ofVault.slug, kind: 'address', chainId: 0, walletAddress: vault.address },
      { slug: ofOwn.slug },
    ])
    expect('walletAddress' in (list[1] ?? {})).toBe(false)
    expect(await subject.store.listTransactions({ userId: user.id, limit: 1, before: undefined })).toHaveLength(1)
    const signedAt = (position: number) => subject.store.findSignedAt({ userId: user.id, position })
    expect(await Promise.all([1, 2, 3].map(signedAt))).toEqual([NOW + 1, NOW, undefined])
    const { records } = (await pinning.findPin(ofVault.slug)) ?? {}
    expect(records).toMatchObject({ version: 2, approvals, policy: new Uint8Array(Buffer.from(vault.policy.text)) })
    const own = await pinning.findPin(ofOwn.slug)
    expect(own?.records).not.toHaveProperty('policy')
    expect(own?.records).not.toHaveProperty('approvals')
    const digest = first[0]?.digest ?? undefined
    const found = await subject.store.findSigners({
      queries: [{ sidHash: session.sidHash, digest, wallet: vault.address }],
      now: NOW,
      idleMs: IDLE_MS,
    })
    expect(found).toMatchObject([{ signed: { signature: null, slug: ofVault.slug } }])
  })

  test('the database rejects changing, deleting or unpinning a policy', async () => {
    const { user } = await createOwner()
    const { policy } = await subject.store.createVault(createVaultOf(user.id))
    await complete(policy)
    const { db } = subject.database
    const bytes = Buffer.from(policy.hash, 'hex')
    await expect(sql`delete from policies where hash = ${bytes}`.execute(db)).rejects.toThrow('immutable')
    await expect(sql`update policies set pinned_at = null where hash = ${bytes}`.execute(db)).rejects.toThrow(
      'immutable',
    )
    await expect(sql`update policies set bytes = '' where hash = ${bytes}`.execute(db)).rejects.toThrow()
  })
})
