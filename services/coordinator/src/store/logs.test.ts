import { createLeafReader, decodeBundle, encodeTile, listTreeNodes } from '@countersign/log'
import { type Hex, hashTree, hashTreeLeaf, toHex } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CLAIM_MS, createTestClaim, createTestLog, type TestLog } from '../../test/store/logs.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { type Claim, createLogStore, type LogStore } from './logs.ts'
import type { Wallet } from './wallets.ts'

const REFUSED = { code: 'attestation_invalid' }

describe('logs', () => {
  let subject: TestStore
  let wallet: Wallet
  let log: TestLog
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())
  beforeEach(() => {
    log = createTestLog()
  })

  const append = (parameters: Parameters<TestLog['toAppend']>[0] = {}) =>
    subject.logStore.appendLog(log.toAppend(parameters))
  const readEntries = async (width = log.entries.length) => {
    const bundle = await subject.logStore.readBundle(log.hash, { index: 0, width })
    return bundle && decodeBundle(bundle, width)
  }

  /** How many rows of each table are read meanwhile. */
  function countRead(tables: readonly string[], run: (logStore: LogStore) => Promise<void>) {
    return subject.database.db.transaction().execute(async (transaction) => {
      // Includes earlier transactions that the connection has not reported yet.
      const count = async () => {
        const { rows } = await sql<{ name: string; read: number }>`
          select relname as name, (coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0))::int as read
          from pg_stat_xact_user_tables`.execute(transaction)
        return tables.map((table) => rows.find(({ name }) => name === table)?.read ?? 0)
      }
      const before = await count()
      await run(createLogStore({ db: transaction }))
      return (await count()).map((read, index) => read - (before[index] ?? 0))
    })
  }

  describe('entries', () => {
    test('are stored once and read unchanged', async () => {
      log.fill(9)
      expect(await append({ to: 4 })).toEqual({ lost: [] })
      expect(await append({ from: 4 })).toEqual({ lost: [] })
      expect(await append({ from: 2, to: 7 })).toEqual({ lost: [] })
      expect(await append()).toEqual({ lost: [] })
      expect(await readEntries()).toEqual(log.entries)
      expect(await readEntries(11)).toBeUndefined()
    })

    test('are rejected as a whole after a gap, with the first missing index', async () => {
      log.fill(9)
      const claim = createTestClaim(wallet.id)
      expect(await append({ from: 3, claims: [claim] })).toEqual({ missing: 0 })
      expect(await subject.logStore.findLogHead(log.hash)).toBeUndefined()
      await append({ to: 4 })
      expect(await append({ from: 5, claims: [claim] })).toEqual({ missing: 4 })
      expect(await subject.logStore.findLogHead(log.hash)).toMatchObject({ written: { size: 4 } })
      expect(await append({ from: 4, claims: [{ ...claim, leaf: randomHex(32) }] })).toEqual({ lost: [] })
    })

    test.each([
      ['an entry', 3, { from: 0 }],
      ['the last of those that are there', 5, { from: 5 }],
    ])('are rejected if they differ from the stored ones: %s', async (_, index, range) => {
      log.fill(5)
      await append()
      log.fill(3)
      const other = log.toAppend(range)
      const forged = other.entries.map((entry, place) => {
        return place + range.from === index
          ? Uint8Array.from(entry, (byte, at) => (at === 40 ? byte ^ 1 : byte))
          : entry
      })
      await expect(subject.logStore.appendLog({ ...other, entries: forged })).rejects.toMatchObject(REFUSED)
      expect(await readEntries(6)).toEqual(log.entries.slice(0, 6))
      expect(await readEntries(7)).toBeUndefined()
    })

    test('are rejected under another key, or with another root of the same size', async () => {
      log.fill(2)
      await append()
      const same = log.toAppend()
      await expect(subject.logStore.appendLog({ ...same, key: createTestLog(log.origin).key })).rejects.toMatchObject(
        REFUSED,
      )
      const checkpoint = { ...same.checkpoint, root: new Uint8Array(32) }
      await expect(subject.logStore.appendLog({ ...same, checkpoint })).rejects.toMatchObject(REFUSED)
      expect(await subject.logStore.findLogHead(log.hash)).toMatchObject({ written: { note: log.toNote(3) } })
    })

    test('are one row per append and tile; a checkpoint in between is another', async () => {
      log.fill(519)
      await append({ to: 250 })
      await append({ from: 250 })
      await append({ from: 100, to: 130 })
      const rows = await subject.query(`select size::integer, length(entries) / 57 as count, note is not null as signed
        from log_appends where log_id = (select id from logs where hash = '\\x${log.hash}') order by size`)
      expect(rows).toEqual([
        { size: 130, count: 0, signed: true },
        { size: 250, count: 250, signed: true },
        { size: 256, count: 6, signed: false },
        { size: 512, count: 256, signed: false },
        { size: 520, count: 8, signed: true },
      ])
      await subject.logStore.insertNote({ hash: log.hash, size: 130, note: log.toNote(130, 2), now: NOW })
      const bundles = await Promise.all(
        [256, 256, 8].map((width, index) => subject.logStore.readBundle(log.hash, { index, width })),
      )
      const read = bundles.flatMap((bundle, index) => bundle && decodeBundle(bundle, [256, 256, 8][index] ?? 0))
      expect(read).toEqual(log.entries)
    })

    test('are compared with stored ones in any pieces', async () => {
      log.fill(600)
      for (const to of [1, 40, 300, 301, 513, 601]) await append({ from: 0, to })
      for (const [from, to] of [
        [0, 601],
        [39, 41],
        [255, 257],
        [299, 512],
        [600, 601],
      ] as const) {
        expect(await append({ from, to })).toEqual({ lost: [] })
        const same = log.toAppend({ from, to })
        for (const place of [0, to - from - 1]) {
          const entries = same.entries.map((entry, at) =>
            at === place ? Uint8Array.from(entry, (byte, offset) => (offset === 56 ? byte ^ 1 : byte)) : entry,
          )
          await expect(subject.logStore.appendLog({ ...same, entries })).rejects.toMatchObject(REFUSED)
        }
      }
    })

    test.each([
      ['too few for the checkpoint', { entries: [] }],
      ['of another length', { entries: [new Uint8Array(56), new Uint8Array(58), new Uint8Array(57)] }],
    ])('are rejected if malformed: %s', async (_, change) => {
      log.fill(2)
      await expect(subject.logStore.appendLog({ ...log.toAppend(), ...change })).rejects.toThrow()
      expect(await subject.logStore.findLogHead(log.hash)).toBeUndefined()
    })

    test('of two concurrent coordinators, overlapping and in any order, give one history', async () => {
      log.fill(400)
      const pieces = Array.from({ length: 40 }, (_, piece) => ({
        from: Math.max(0, piece * 10 - 7),
        to: piece * 10 + 11,
      }))
      async function write(order: typeof pieces): Promise<void> {
        const late: typeof pieces = []
        for (const piece of order) if ('missing' in (await append(piece))) late.push(piece)
        // Each round stores at least the first of the early ones.
        if (late.length > 0) await write(late)
      }
      await Promise.all([write(pieces), write(pieces), write(pieces.toReversed()), append()])
      expect(await subject.logStore.findLogHead(log.hash)).toMatchObject({ written: { size: 401 } })
      const nodes = await subject.logStore.readTiles(log.hash, [
        { level: 0, index: 0, width: 256 },
        { level: 0, index: 1, width: 145 },
        { level: 1, index: 0, width: 1 },
      ])
      const leaves = log.entries.map(hashTreeLeaf)
      expect(nodes.map((tile) => Buffer.from(tile).toString('hex'))).toEqual(
        [leaves.slice(0, 256), leaves.slice(256), [hashTree(leaves.slice(0, 256))]].map((hashes) =>
          Buffer.from(encodeTile(hashes)).toString('hex'),
        ),
      )
    })
  })

  describe('the head', () => {
    test('is the newest checkpoint with its frontier, and the newest cosigned note', async () => {
      log.fill(299)
      await append({ to: 100 })
      await append({ from: 100 })
      await append({ from: 20, to: 60 })
      await subject.logStore.insertNote({ hash: log.hash, size: 100, note: log.toNote(100, 2), now: NOW })
      await subject.logStore.insertNote({ hash: log.hash, size: 60, note: log.toNote(60, 3), now: NOW + 1 })
      const head = await subject.logStore.findLogHead(log.hash)
      const readNode = createLeafReader(log.entries.map(hashTreeLeaf))
      expect(head).toEqual({
        written: { size: 300, note: log.toNote(300), bootId: log.bootId, hashes: expect.any(Array) },
        cosigned: { size: 100, note: log.toNote(100, 2) },
      })
      expect(head?.written.hashes.map((hash) => Uint8Array.from(hash))).toEqual(listTreeNodes(300).map(readNode))
      expect(await subject.logStore.findCosigned(log.hash)).toEqual(head?.cosigned)
      const listed = { hash: log.hash, origin: log.origin, key: log.key, size: 100 }
      expect((await subject.logStore.listLogs()).filter(({ hash }) => hash === log.hash)).toEqual([listed])
    })

    test('of an unknown log is undefined', async () => {
      expect(await subject.logStore.findLogHead(randomHex(32))).toBeUndefined()
      expect(await subject.logStore.findCosigned(randomHex(32))).toBeUndefined()
      await expect(subject.logStore.readTiles(randomHex(32), [{ level: 0, index: 0, width: 1 }])).rejects.toThrow()
    })

    test('is found without reading other rows', async () => {
      log.fill(255)
      await append({ to: 216 })
      for (let to = 217; to <= 256; to++) {
        await append({ from: to - 1, to })
        await subject.logStore.insertNote({ hash: log.hash, size: to, note: log.toNote(to, 2), now: NOW })
      }
      const fetched = await countRead(['log_appends', 'log_notes'], async (logStore) => {
        const head = await logStore.findLogHead(log.hash)
        expect(head).toMatchObject({ written: { size: 256 }, cosigned: { size: 256 } })
      })
      expect(fetched).toEqual([1, 1])
    })

    test('of one size, the later note wins; the same note twice is one', async () => {
      await append()
      for (const [witnesses, now] of [
        [2, NOW],
        [3, NOW + 1],
        [2, NOW + 2],
      ] as const) {
        await subject.logStore.insertNote({ hash: log.hash, size: 1, note: log.toNote(1, witnesses), now })
      }
      expect(await subject.logStore.findCosigned(log.hash)).toEqual({ size: 1, note: log.toNote(1, 3) })
    })

    test('a note of an unknown checkpoint is rejected', async () => {
      await append()
      log.fill(1)
      const note = { hash: log.hash, size: 2, note: log.toNote(2, 3), now: NOW }
      await expect(subject.logStore.insertNote(note)).rejects.toThrow('log_notes_checkpoint_fkey')
      await expect(subject.logStore.insertNote({ ...note, hash: randomHex(32) })).rejects.toThrow()
    })
  })

  describe('claims', () => {
    const claimAt = (claim: Claim, now = NOW) => append({ claims: [claim], now })
    const rival = (claim: Claim) => ({ ...claim, leaf: randomHex(32) })
    const find = ({ leaf }: Claim) => subject.query(`select 1 from claims where leaf = '\\x${leaf.slice(0, 32)}'`)
    /** Simulates a crash of PostgreSQL, which empties unlogged tables, and a standby, which never has them. */
    const crash = () => subject.query('truncate claims, claims_loaded')

    test('of several for one digest the first wins, even in one call; repeating it changes nothing', async () => {
      const claim = createTestClaim(wallet.id)
      const [second, third, alone] = [rival(claim), rival(claim), createTestClaim(wallet.id)]
      expect(await append({ claims: [claim, second, alone] })).toEqual({ lost: [second.leaf] })
      expect(await append({ claims: [alone, claim] })).toEqual({ lost: [] })
      expect(await append({ claims: [third, claim, second] })).toEqual({ lost: [third.leaf, second.leaf] })
      const sameDigest = { ...rival(claim), walletId: (await createTestWallet(subject.store)).id }
      expect(await claimAt(sameDigest)).toEqual({ lost: [] })
    })

    test('of 16 concurrent calls on several logs with the same digests in other orders, one wins each', async () => {
      const claims = Array.from({ length: 20 }, () => createTestClaim(wallet.id))
      const offers = Array.from({ length: 16 }, (_, index) => {
        const own = claims.map(rival)
        return { log: createTestLog(), claims: index % 2 === 0 ? own : own.toReversed() }
      })
      const answers = await Promise.all(
        offers.map((offer) => subject.logStore.appendLog(offer.log.toAppend({ claims: offer.claims }))),
      )
      const lost = answers.flatMap((answer) => ('lost' in answer ? answer.lost : []))
      expect(new Set(lost).size).toBe(15 * 20)
      const won = offers.flatMap((offer) => offer.claims).filter(({ leaf }) => !lost.includes(leaf))
      expect(won.map(({ digest }) => digest).sort()).toEqual(claims.map(({ digest }) => digest).sort())
    })

    test.each(['dropped', 'unacknowledged'] as const)('can be taken over if the leaf was %s', async (ending) => {
      const claim = createTestClaim(wallet.id)
      await claimAt(claim)
      const [early, next] = [rival(claim), rival(claim)]
      log.add({ kind: ending, leaf: randomHex(32) })
      log.add({ kind: 'signature', leaf: claim.leaf })
      expect(await claimAt(early)).toEqual({ lost: [early.leaf] })
      log.add({ kind: ending, leaf: claim.leaf })
      expect(await claimAt(next)).toEqual({ lost: [] })
      expect(await claimAt(claim)).toEqual({ lost: [claim.leaf] })
    })

    test('cannot be taken over because another log says that the leaf was dropped', async () => {
      const claim = createTestClaim(wallet.id)
      await claimAt(claim)
      const other = createTestLog()
      other.add({ kind: 'dropped', leaf: claim.leaf })
      const next = rival(claim)
      expect(await subject.logStore.appendLog(other.toAppend({ claims: [next] }))).toEqual({ lost: [next.leaf] })
    })

    test('can be taken over if a later boot is in their log, and only there', async () => {
      const claim = createTestClaim(wallet.id)
      await claimAt(claim)
      const other = createTestLog()
      other.boot()
      const [early, next] = [rival(claim), rival(claim)]
      expect(await subject.logStore.appendLog(other.toAppend({ claims: [early] }))).toEqual({ lost: [early.leaf] })
      log.boot()
      await append()
      expect(await subject.logStore.appendLog(other.toAppend({ claims: [next] }))).toEqual({ lost: [] })
    })

    test('can be taken over after they expire, and not before', async () => {
      const claim = createTestClaim(wallet.id)
      await claimAt(claim)
      const [early, next] = [rival(claim), rival(claim)]
      expect(await claimAt(early, NOW + CLAIM_MS)).toEqual({ lost: [early.leaf] })
      expect(await claimAt(next, NOW + CLAIM_MS + 1)).toEqual({ lost: [] })
    })

    test('are free after they are released', async () => {
      const claims = [createTestClaim(wallet.id), createTestClaim(wallet.id)] as const
      await append({ claims })
      await subject.logStore.releaseClaims([claims[0], rival(claims[1]), createTestClaim(wallet.id)])
      await subject.logStore.releaseClaims([])
      const next = claims.map(rival)
      expect(await append({ claims: next })).toEqual({ lost: [next[1]?.leaf] })
    })

    test('can be taken over by the append with the entry that drops them', async () => {
      const claim = createTestClaim(wallet.id)
      await claimAt(claim)
      log.add({ kind: 'dropped', leaf: claim.leaf })
      expect(await claimAt(rival(claim))).toEqual({ lost: [] })
    })

    test('cannot be taken over because a late response of an earlier boot is stored again', async () => {
      const early = log.toAppend({ claims: [createTestClaim(wallet.id)] })
      await subject.logStore.appendLog(early)
      log.boot()
      const claim = createTestClaim(wallet.id)
      await claimAt(claim)
      const late = rival(claim)
      expect(await subject.logStore.appendLog({ ...early, claims: [late] })).toEqual({ lost: [late.leaf] })
    })

    describe('after a crash of PostgreSQL', () => {
      test('are still held: those of one append, of one checkpoint’s callers, and of several logs', async () => {
        const [first, second, elsewhere] = [1, 2, 3].map(() => createTestClaim(wallet.id)) as [Claim, Claim, Claim]
        log.fill(3)
        await append({ claims: [first] })
        await append({ claims: [second] })
        await subject.logStore.appendLog(createTestLog().toAppend({ claims: [elsewhere] }))
        const held = [first, second, elsewhere]
        await crash()
        const late = held.map(rival)
        const answer = await subject.logStore.appendLog(createTestLog().toAppend({ claims: late }))
        expect(answer).toEqual({ lost: late.map(({ leaf }) => leaf) })
        expect(await append({ claims: held })).toEqual({ lost: [] })
      })

      test('still end: dropped, of an ended boot, or expired', async () => {
        const claims = [1, 2, 3, 4].map(() => createTestClaim(wallet.id))
        const [dropped, over, old, held] = claims as [Claim, Claim, Claim, Claim]
        const other = createTestLog()
        await subject.logStore.appendLog(other.toAppend({ claims: [over] }))
        await append({ claims: [dropped, held] })
        await subject.logStore.appendLog(createTestLog().toAppend({ claims: [old], now: NOW - 1 }))
        other.boot()
        await subject.logStore.appendLog(other.toAppend())
        log.add({ kind: 'dropped', leaf: dropped.leaf })
        await append()
        await crash()
        const late = claims.map(rival)
        expect(await append({ claims: late, now: NOW + CLAIM_MS })).toEqual({ lost: [late[3]?.leaf] })
      })

      test('are the winners, and of a claim that was taken over the later one', async () => {
        const claim = createTestClaim(wallet.id)
        const [loser, next, last] = [rival(claim), rival(claim), rival(claim)]
        await claimAt(claim)
        expect(await claimAt(loser, NOW + 1)).toEqual({ lost: [loser.leaf] })
        log.add({ kind: 'dropped', leaf: claim.leaf })
        expect(await claimAt(next, NOW + 2)).toEqual({ lost: [] })
        await crash()
        expect(await claimAt(last, NOW + 3)).toEqual({ lost: [last.leaf] })
        expect(await claimAt(next, NOW + 3)).toEqual({ lost: [] })
      })

      test('that were released return until they expire', async () => {
        const claim = createTestClaim(wallet.id)
        await claimAt(claim)
        await subject.logStore.releaseClaims([claim])
        await crash()
        const [early, next] = [rival(claim), rival(claim)]
        expect(await claimAt(early)).toEqual({ lost: [early.leaf] })
        expect(await claimAt(next, NOW + CLAIM_MS + 1)).toEqual({ lost: [] })
      })

      test('are loaded once by 16 concurrent calls', async () => {
        const held = Array.from({ length: 20 }, () => createTestClaim(wallet.id))
        const free = Array.from({ length: 20 }, () => createTestClaim(wallet.id))
        await append({ claims: held })
        await crash()
        const offers = Array.from({ length: 16 }, (_, index) => {
          const claims = [...held, ...free].map(rival)
          return createTestLog().toAppend({ claims: index % 2 === 0 ? claims : claims.toReversed() })
        })
        const answers = await Promise.all(offers.map((offer) => subject.logStore.appendLog(offer)))
        const lost = new Set(answers.flatMap((answer) => ('lost' in answer ? answer.lost : [])))
        const won = offers.flatMap(({ claims }) => claims).filter(({ leaf }) => !lost.has(leaf))
        expect(won.map(({ digest }) => digest).sort()).toEqual(free.map(({ digest }) => digest).sort())
        expect(await subject.query('select 1 from claims_loaded')).toHaveLength(1)
      })
    })

    test('of already signed digests are lost and leave no row', async () => {
      const digest: Hex = `0x${randomHex(32)}`
      const signings = [createTestSigning(wallet, digest)]
      await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
      const claim = createTestClaim(wallet.id, { digest })
      expect(await claimAt(claim)).toEqual({ lost: [claim.leaf] })
      expect(await find(claim)).toEqual([])
    })

    test('are compared with signed digests by key, without reading the rest', async () => {
      const signings = Array.from({ length: 40 }, () => createTestSigning(wallet))
      await subject.store.insertSignings({
        batch: createTestBatch({ leaves: Array.from({ length: 40 }, () => randomHex(32)) }),
        signings,
        now: NOW,
      })
      const signed = createTestClaim(wallet.id, { digest: signings[0]?.statement.digest as Hex })
      const claims = [createTestClaim(wallet.id), signed, createTestClaim(wallet.id)]
      const fetched = await countRead(['signing_lookups'], async (logStore) => {
        expect(await logStore.appendLog(log.toAppend({ claims }))).toEqual({ lost: [signed.leaf] })
      })
      expect(fetched).toEqual([1])
    })

    test('that conflict are compared by key, too', async () => {
      const claims = Array.from({ length: 40 }, () => createTestClaim(wallet.id))
      for (const { leaf } of claims) log.add({ kind: 'signature', leaf })
      for (const { leaf } of claims.slice(1)) log.add({ kind: 'dropped', leaf })
      await append({ claims })
      const [held, dropped] = claims.slice(0, 2).map(rival) as [Claim, Claim]
      const fetched = await countRead(['claims', 'log_appends', 'log_ended'], async (logStore) => {
        const size = log.entries.length
        expect(await logStore.appendLog(log.toAppend({ from: size, claims: [held, dropped] }))).toEqual({
          lost: [held.leaf],
        })
      })
      for (const count of fetched) expect(count).toBeLessThan(20)
    })

    test('are deleted after they expire, in any number, and no others', async () => {
      const over = Array.from({ length: 1_025 }, () => createTestClaim(wallet.id))
      const fresh = createTestClaim(wallet.id)
      await append({ claims: over, now: NOW - 1 })
      await claimAt(fresh)
      await subject.logStore.deleteClaims(NOW)
      const left = await subject.query(`select encode(leaf, 'hex') as leaf from claims`)
      const leaves = new Set(left.map((row) => (row as { leaf: string }).leaf))
      expect(over.filter(({ leaf }) => leaves.has(leaf.slice(0, 32)))).toEqual([])
      expect(leaves.has(fresh.leaf.slice(0, 32))).toBe(true)
    })

    test('that are locked are left for the next time without waiting', async () => {
      const [held, free] = [createTestClaim(wallet.id), createTestClaim(wallet.id)]
      await append({ claims: [held, free], now: NOW - 1 })
      await subject.database.db.transaction().execute(async (other) => {
        await sql`select 1 from claims where leaf = ${Buffer.from(held.leaf, 'hex').subarray(0, 16)} for update`.execute(
          other,
        )
        await subject.logStore.deleteClaims(NOW)
        expect([await find(held), await find(free)]).toEqual([[expect.anything()], []])
      })
      await subject.logStore.deleteClaims(NOW)
      expect(await find(held)).toEqual([])
    })

    test('are deleted by key even if the planner’s table size is outdated', async () => {
      const claims = Array.from({ length: 200 }, () => createTestClaim(wallet.id))
      await append({ claims })
      await subject.query('analyze claims')
      const lost = rival(claims[0] as Claim)
      const [read] = await countRead(['claims'], async (logStore) => {
        expect(await logStore.appendLog(log.toAppend({ claims: [lost] }))).toEqual({ lost: [lost.leaf] })
      })
      expect(read).toBeLessThan(20)
    })

    test.each<[string, Partial<Claim>]>([
      ['a leaf that is no hex', { leaf: 'zz'.repeat(32) }],
      ['a leaf in capitals', { leaf: 'AB'.repeat(32) }],
      ['a leaf that is too short', { leaf: '00'.repeat(31) }],
      ['a digest that is too long', { digest: `0x${'00'.repeat(33)}` }],
    ])('are rejected if invalid: %s', async (_, changes) => {
      const [good, bad] = [createTestClaim(wallet.id), createTestClaim(wallet.id, changes)]
      await expect(append({ claims: [bad, good] })).rejects.toThrow('not a claim')
      expect(await find(good)).toEqual([])
      await expect(subject.query(`select take_claims(1, '', '', '\\x0011'::bytea, now(), now())`)).rejects.toThrow(
        'not claims',
      )
    })
  })

  describe('states of the table', () => {
    const toState = (row: number, sequence: number, random = randomHex(16)) => ({
      row,
      state: `${`${row}`.repeat(32)}${random}${sequence.toString(16).padStart(16, '0')}00000000`,
    })
    const readStates = async (since = -1) => (await subject.logStore.findTable(log.hash, since))?.states

    test('are stored with their entries, and only the newest of each row', async () => {
      log.fill(6)
      const [first, second, third, other] = [toState(0, 1), toState(0, 2), toState(0, 3), toState(1, 1)]
      await append({ to: 2, states: [first, second] })
      expect(await readStates()).toEqual([second])
      await append({ from: 2, to: 4, states: [other, third] })
      expect(await subject.logStore.findTable(log.hash, -1)).toEqual({
        size: 4,
        note: log.toNote(4),
        entry: toHex(log.entries[3] as Uint8Array),
        states: [third, other],
      })
      // The enclave repeats what it has appended, and another coordinator may have stored it before.
      await append({ from: 0, to: 2, states: [first, second] })
      await append({ from: 1, to: 4, states: [second, other, toState(0, 3)] })
      expect(await readStates()).toEqual([third, other])
    })

    test('can be read from a size on', async () => {
      log.fill(6)
      await append({ to: 2, states: [toState(0, 1), toState(1, 1)] })
      const changed = toState(1, 2)
      await append({ from: 2, states: [changed] })
      expect(await readStates(2)).toEqual([changed])
      expect(await readStates(log.entries.length)).toEqual([])
      expect(await subject.logStore.findTable(createTestLog().hash, -1)).toBeUndefined()
    })

    test('are not stored without their entries', async () => {
      log.fill(6)
      expect(await append({ from: 3, states: [toState(0, 1)] })).toEqual({ missing: 0 })
      await append({ to: 4, states: [toState(0, 1)] })
      const forged = [...log.entries.slice(0, 3), log.entries[4] as Uint8Array]
      const other = { ...log.toAppend({ to: 4, states: [toState(0, 2)] }), entries: forged }
      await expect(subject.logStore.appendLog(other)).rejects.toMatchObject(REFUSED)
      await expect(append({ from: 4, states: [{ row: -1, state: toState(0, 2).state }] })).rejects.toThrow()
      expect(await readStates()).toMatchObject([{ row: 0 }])
      expect(await subject.logStore.findLogHead(log.hash)).toMatchObject({ written: { size: 4 } })
    })

    test('the database rejects to delete them, to undo a change and to give a row to another vault', async () => {
      log.fill(2)
      await append({ states: [toState(0, 5)] })
      const at = `where log_id = (select id from logs where hash = '\\x${log.hash}')`
      const [older, other] = [toState(0, 4), { ...toState(1, 9), row: 0 }]
      for (const { state } of [older, other]) {
        await expect(subject.query(`update log_states set state = '\\x${state}' ${at}`)).rejects.toThrow(
          'are immutable',
        )
      }
      await expect(subject.query(`delete from log_states ${at}`)).rejects.toThrow('are immutable')
    })
  })

  describe('the database rejects', () => {
    beforeEach(async () => {
      log.fill(256)
      log.add({ kind: 'dropped' })
      await append({ claims: [createTestClaim(wallet.id)] })
      await subject.logStore.insertNote({ hash: log.hash, size: 258, note: log.toNote(258, 2), now: NOW })
    })

    test.each(['logs', 'log_appends', 'log_ended', 'log_nodes', 'log_notes'])('deleting from %s', async (table) => {
      await expect(subject.query(`delete from ${table}`)).rejects.toThrow(`${table} are immutable`)
    })

    test.each([
      [`logs set key = 'another'`],
      [`log_appends set entries = decode(repeat('00', 57), 'hex')`],
      ['log_appends set size = size + 1000000'],
      [`log_appends set claims = ''`],
      [`log_ended set leaf = decode(repeat('00', 16), 'hex')`],
      [`log_nodes set hash = decode(repeat('00', 32), 'hex')`],
      [`log_appends set root = decode(repeat('00', 32), 'hex')`],
      [`log_appends set note = 'another'`],
      [`log_notes set note = 'another', hash = sha256('another')`],
    ])('to change %s', async (change) => {
      await expect(subject.query(`update ${change}`)).rejects.toThrow('are immutable')
    })

    test('a note under a wrong hash, and an entry of another length', async () => {
      const columns = '(hash, log_id, size, note, created_at)'
      const values = `select sha256('other'), log_id, size, 'note', now() from log_notes limit 1`
      await expect(subject.query(`insert into log_notes ${columns} ${values}`)).rejects.toThrow('log_notes_check')
      const append = `select log_id, 999999, 'short', boot_id, root, note, '', now() from log_appends limit 1`
      await expect(subject.query(`insert into log_appends ${append}`)).rejects.toThrow('log_appends_entries_check')
    })
  })
})
