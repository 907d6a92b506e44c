import { parseTlogProof } from '@countersign/log'
import { createEnclaveSettings, type Hex, hashLeaf, toHex } from '@countersign/protocol'
import { parseBlock } from '@countersign/receipt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestLog, type TestLog } from '../../test/store/logs.ts'
import {
  createTestAuthorization,
  createTestBatch,
  createTestRelease,
  createTestSigningV2,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { assembleReceipt } from '../publish/assembleReceipt.ts'
import type { SigningBatch } from './batches.ts'
import { createPinningStore } from './pinning.ts'
import type { Signing } from './signings.ts'
import type { Wallet } from './wallets.ts'

type SigningV2 = Signing & { version: 2 }

describe('signings with a log', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const find = (slug: string) => createPinningStore({ db: subject.database.db, jobs: subject.jobs }).findPin(slug)
  const digestOf = ({ signed }: SigningV2) => (signed.subject as { digest: Hex }).digest
  const leafOf = ({ statement }: SigningV2) => toHex(hashLeaf(statement))

  /** Signings whose entries are in a log between others. They are claimed and cosigned, but not yet stored. */
  async function sign(count = 1, before = 299) {
    const log = createTestLog()
    log.fill(before)
    const coordinatorKey = randomHex(32)
    const signings = Array.from({ length: count }, (_, place): SigningV2 => {
      const signing = createTestSigningV2(wallet, createTestAuthorization())
      const statement = { ...signing.statement, coordinatorKey }
      return { ...signing, statement, logIndex: before + 1 + place }
    })
    for (const { statement } of signings) {
      const { keyId, signedAt } = statement
      log.add({ kind: 'signature', keyId, leaf: toHex(hashLeaf(statement)), timeMs: Date.parse(signedAt) })
    }
    log.fill(3)
    const claims = signings.map((signing) => ({
      walletId: wallet.id,
      digest: digestOf(signing),
      leaf: leafOf(signing),
    }))
    expect(await subject.logStore.appendLog(log.toAppend({ claims }))).toEqual({ lost: [] })
    const settings = createEnclaveSettings([{ kind: 'unsigned' }], [], {
      origins: [log.origin],
      witnesses: [randomHex(32)],
      quorum: 1,
    })
    const note = log.toNote(log.entries.length, 2)
    const batch = createTestBatch({
      settings,
      bootId: log.bootId,
      logKey: log.key,
      log: { origin: log.origin, note },
      release: createTestRelease(coordinatorKey),
    })
    return { log, signings, batch, note }
  }
  const insert = (batch: SigningBatch, signings: readonly Signing[]) =>
    subject.store.insertSignings({ batch, signings, now: NOW })
  const countClaims = async (signings: readonly SigningV2[]) => {
    const leaves = signings.map((signing) => `'\\x${leafOf(signing).slice(0, 32)}'`)
    return (await subject.query(`select 1 from claims where leaf in (${leaves})`)).length
  }

  test('the receipt has the key and a proof that the entry is in the log', async () => {
    const { log, signings, batch, note } = await sign(5)
    await insert(batch, signings)
    for (const { slug, logIndex } of signings) {
      const work = await find(slug)
      if (work?.records.version !== 2) throw new Error('of another version')
      expect(work.records.release.batch.logKey).toBe(log.key)
      expect(work.records.log).toMatchObject({ index: logIndex, checkpoint: note })
      const { receipt } = assembleReceipt(work)
      const text = parseBlock('attestation', receipt.bytes).log ?? ''
      expect(parseTlogProof(text)).toEqual({ ...work.records.log, proof: expect.any(Array) })
      expect(assembleReceipt(work)).toEqual(assembleReceipt((await find(slug)) ?? work))
    }
  })

  test('stores the note once', async () => {
    const { log, signings, batch, note } = await sign(4)
    const [first, ...rest] = signings as [SigningV2, ...SigningV2[]]
    await insert(batch, [first])
    await subject.logStore.insertNote({ hash: log.hash, size: log.entries.length, note, now: NOW })
    await Promise.all(rest.map((signing) => insert(batch, [signing])))
    expect(await subject.query(`select 1 from log_notes where note = '${note}'`)).toHaveLength(1)
    expect(await subject.logStore.findCosigned(log.hash)).toEqual({ size: log.entries.length, note })
  })

  test('a claim of a stored signing is lost, before and after it expires', async () => {
    const { log, signings, batch } = await sign(3)
    await insert(batch, signings)
    expect(await countClaims(signings)).toBe(3)
    for (const now of [NOW, NOW + 90_001, NOW + 90_002]) {
      const rivals = signings.map((one) => ({ walletId: wallet.id, digest: digestOf(one), leaf: randomHex(32) }))
      const lost = rivals.map(({ leaf }) => leaf)
      expect(await subject.logStore.appendLog(log.toAppend({ claims: rivals, now }))).toEqual({ lost })
    }
    expect(await countClaims(signings)).toBe(0)
  })

  test('returns the earlier signing to the requests that lost', async () => {
    const { log, signings, batch } = await sign()
    const [signing] = signings as [SigningV2]
    // Another call took the claim over after it expired and commits after this one.
    const rival = { walletId: wallet.id, digest: digestOf(signing), leaf: randomHex(32) }
    const later = log.toAppend({ claims: [rival], now: NOW + 90_001 })
    expect(await subject.logStore.appendLog(later)).toEqual({ lost: [] })
    const stored = await insert(batch, [signing])
    const second = await sign()
    const again = { ...(second.signings[0] as SigningV2), signed: signing.signed }
    expect(await insert(second.batch, [again])).toEqual(stored)
  })

  test('concurrent claims and commits of the same digests never deadlock', async () => {
    const { signings, batch } = await sign(40)
    const rivals = Array.from({ length: 8 }, (_, round) => {
      const claims = signings.map((one) => ({ walletId: wallet.id, digest: digestOf(one), leaf: randomHex(32) }))
      return createTestLog().toAppend({ claims: round % 2 === 0 ? claims : claims.toReversed() })
    })
    const halves = [signings.slice(0, 20), signings.slice(20).toReversed()]
    const [answers] = await Promise.all([
      Promise.all(rivals.map((rival) => subject.logStore.appendLog(rival))),
      ...halves.map((half) => insert(batch, half)),
    ])
    // Before the commit the first call's claims block the other, after it its signings.
    expect(answers.map((answer) => ('lost' in answer ? answer.lost.length : -1))).toEqual(Array(8).fill(40))
    expect(
      await subject.query(`select 1 from claims where log_id not in (select log_id from log_appends where size > 300)`),
    ).toEqual([])
  })

  test.each<[string, (batch: SigningBatch, log: TestLog) => Partial<SigningBatch>]>([
    ['another key of the log', () => ({ logKey: createTestLog().key })],
    ['a key without a log', () => ({ log: undefined })],
    ['a log without a key', () => ({ logKey: undefined })],
    ['a note of another log', ({ log }) => ({ log: log && { ...log, note: createTestLog().toNote(1, 2) } })],
    ['a note that does not cover the entry', (_, { origin, toNote }) => ({ log: { origin, note: toNote(300, 2) } })],
  ])('rejects %s and stores nothing', async (_, change) => {
    const { log, signings, batch } = await sign()
    const [signing] = signings as [SigningV2]
    await expect(insert({ ...batch, ...change(batch, log) }, signings)).rejects.toMatchObject({
      code: 'attestation_invalid',
    })
    expect(await find(signing.slug)).toBeUndefined()
    expect(await countClaims(signings)).toBe(1)
  })

  test('returns log_unavailable for a note of an unknown checkpoint or log', async () => {
    const { log, signings, batch } = await sign()
    log.fill(1)
    const { origin, toNote } = log
    const ahead = { origin, note: toNote(log.entries.length, 2) }
    for (const given of [ahead, { origin: 'log.example/other', note: toNote(1, 2) }]) {
      await expect(insert({ ...batch, log: given }, signings)).rejects.toMatchObject({ code: 'log_unavailable' })
    }
    expect(await find((signings[0] as SigningV2).slug)).toBeUndefined()
  })

  test('returns log_unavailable once for a log that the database lost and got again with another id', async () => {
    const { log, signings, batch } = await sign(2)
    const [first, second] = signings as [SigningV2, SigningV2]
    await insert(batch, [first])
    // Like on a standby that was promoted before it had the rows. Rows can't be deleted, so this simulates it.
    await subject.query('truncate logs, log_appends, log_ended, log_nodes, log_notes cascade')
    await expect(insert(batch, [second])).rejects.toMatchObject({ code: 'log_unavailable' })
    await subject.logStore.appendLog(log.toAppend())
    expect(await insert(batch, [second])).toMatchObject([{ slug: second.slug }])
  })

  test('assembles nothing from a row that lacks its log entry', async () => {
    const { signings, batch } = await sign()
    const [{ logIndex: _, ...signing }] = signings as [SigningV2]
    await insert(batch, [signing])
    await expect(find(signing.slug)).rejects.toThrow('the place in the log is missing')
  })

  test.each([
    ['another entry', (signing: SigningV2) => ({ ...signing, logIndex: (signing.logIndex ?? 0) + 1 })],
    ['another time', (signing: SigningV2) => withStatement(signing, { signedAt: new Date(NOW + 1).toISOString() })],
    ['another key', (signing: SigningV2) => withStatement(signing, { keyId: randomHex(16) })],
  ])('a proof of %s makes no receipt', async (_, change) => {
    const { signings, batch } = await sign()
    const signing = change(signings[0] as SigningV2)
    await insert(batch, [signing])
    const work = await find(signing.slug)
    if (work === undefined) throw new Error('no such proof')
    expect(() => assembleReceipt(work)).toThrow(expect.objectContaining({ code: 'inclusion_invalid' }))
  })

  test('the index in the log never changes', async () => {
    const { signings, batch } = await sign()
    await insert(batch, signings)
    const { slug } = signings[0] as SigningV2
    for (const change of [
      `signings set log_index = 0 where id = (select signing_id from proofs where slug = '${slug}')`,
      `signings set log_index = null where id = (select signing_id from proofs where slug = '${slug}')`,
      'verifications set log_note = null',
    ])
      await expect(subject.query(`update ${change}`)).rejects.toMatchObject({ code: '23001' })
  })

  test('signings without a log are stored as before, without an entry', async () => {
    const signing = createTestSigningV2(wallet)
    const { coordinatorKey } = signing.statement
    await insert(createTestBatch({ release: createTestRelease(coordinatorKey) }), [signing])
    const work = await find(signing.slug)
    expect(work?.records).not.toHaveProperty('log')
    expect(work?.records.version === 2 && Object.keys(work.records.release.batch)).not.toContain('logKey')
  })
})

function withStatement(signing: SigningV2, changes: Partial<SigningV2['statement']>): SigningV2 {
  return { ...signing, statement: { ...signing.statement, ...changes } }
}
