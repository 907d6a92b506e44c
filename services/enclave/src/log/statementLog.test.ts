import { createPublicKey, hash, sign as signByNode } from 'node:crypto'
import {
  appendLeaves,
  computeFrontierRoot,
  createNoteKey,
  decodeLogEntry,
  emptyFrontier,
  type Frontier,
  formatNote,
  hashLogEntry,
  openNote,
  parseCheckpoint,
  parseNote,
  parseVkey,
  signNote,
} from '@countersign/log'
import { fromHex, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/src/logs.fake.ts'
import {
  bootId,
  configHash,
  coordinatorKey,
  cosign,
  createSignedItem,
  createTestLog,
  keyOf,
  keyring,
  keyWorker,
  NOW,
  open,
  origins,
  readEntries,
  release,
  sign,
  stranger,
  toBatch,
  toLeaf,
  witnesses,
} from '../../test/statementLog.ts'

const [first, second] = origins as [string, string]
const withCode = (code: string) => expect.objectContaining({ code })
const empty = { origin: first, checkpoint: null, hashes: [] }
const other = 'ef'.repeat(32)
const given = expect.objectContaining({ statement: expect.anything(), subject: expect.anything() })
const items = (count: number) => Array.from({ length: count }, () => createSignedItem())
const kindsOf = async (log: ReturnType<typeof createTestLog>) => (await readEntries(log)).map(({ kind }) => kind)

async function createOpenLog(changes?: Parameters<typeof createTestLog>[0]) {
  const log = createTestLog(changes)
  await open(log)
  return log
}

/** The frontier of all that a log has appended. */
async function toStart(log: ReturnType<typeof createTestLog>, from: Frontier = emptyFrontier) {
  const { log: answer } = await log.statementLog.call({ from: from.size })
  const leaves = (answer?.entries ?? []).map((entry) => hashLogEntry(decodeLogEntry(fromHex(entry))))
  const frontier = appendLeaves(from, leaves)
  return { origin: first, checkpoint: answer?.checkpoint ?? '', hashes: frontier.hashes.map(toHex), frontier }
}

describe('the start of a log', () => {
  test('from nothing: the boot is the first entry, signed by the key of the origin, and nothing is open yet', async () => {
    const { statementLog } = createTestLog()
    expect(await statementLog.call({})).toEqual({ bootId: toHex(bootId), log: null })
    const { log } = await statementLog.call({ start: empty })
    expect(log).toMatchObject({ origin: first, from: 0, isOpen: false })
    const entry = { kind: 'boot', bootId: toHex(bootId), configHash: toHex(configHash), timeMs: NOW }
    expect(log?.entries.map((bytes) => decodeLogEntry(fromHex(bytes)))).toEqual([entry])
    const { own, keys } = await statementLog.describe()
    expect(own).toEqual(origins)
    expect(keys.map((key) => parseVkey(key).name)).toEqual(origins)
    const { text } = openNote(log?.checkpoint ?? '', [parseVkey(keys[0] ?? '')])
    expect(parseCheckpoint(text)).toMatchObject({ origin: first, size: 1, root: hashLogEntry(entry as never) })
    expect(() => statementLog.assertOpen()).toThrow(withCode('log_unavailable'))
    expect(() => statementLog.reserve([])).toThrow(withCode('log_unavailable'))
  })

  test('a second start of the same origin repeats, whatever it says, and two at once are one', async () => {
    const { statementLog } = createTestLog()
    const [one, two] = await Promise.all([statementLog.call({ start: empty }), statementLog.call({ start: empty })])
    expect(two).toEqual(one)
    const third = await statementLog.call({ start: { ...empty, checkpoint: 'nonsense', hashes: ['00'.repeat(32)] } })
    expect(third).toEqual(one)
  })

  test('goes on from a checkpoint of an earlier boot', async () => {
    const earlier = await createOpenLog()
    await sign(earlier, items(4))
    const { frontier, ...start } = await toStart(earlier)
    const later = createTestLog({ bootId: new Uint8Array(16).fill(4) })
    const { log } = await later.statementLog.call({ start })
    expect(log).toMatchObject({ from: 5, isOpen: false })
    const boot = hashLogEntry(decodeLogEntry(fromHex(log?.entries[0] ?? '')))
    expect(parseCheckpoint(parseNote(log?.checkpoint ?? '').text)).toMatchObject({
      size: 6,
      root: computeFrontierRoot(appendLeaves(frontier, [boot])),
    })
  })

  test.each<[string, (start: Awaited<ReturnType<typeof toStart>>) => object]>([
    ['an origin that is not ours', (start) => ({ ...start, origin: 'log.example/c' })],
    ['an origin of another enclave of the service', (start) => ({ ...start, origin: second })],
    ['a checkpoint of another log', (start) => ({ ...start, origin: 'log.example/a2' })],
    ['a frontier that is made up', (start) => ({ ...start, hashes: start.hashes.map(() => '11'.repeat(32)) })],
    ['a frontier of another size', (start) => ({ ...start, hashes: start.hashes.slice(1) })],
    ['no frontier', (start) => ({ ...start, hashes: [] })],
    ['a frontier in another order', (start) => ({ ...start, hashes: start.hashes.toReversed() })],
    ['a frontier of the empty tree', (start) => ({ ...start, checkpoint: null })],
    [
      'another size under the same signature',
      (start) => ({ ...start, checkpoint: start.checkpoint.replace('\n3\n', '\n2\n') }),
    ],
    ['no signature', (start) => ({ ...start, checkpoint: start.checkpoint.split('\n\n')[0] })],
    [
      'the signature of somebody else',
      (start) => ({ ...start, checkpoint: forge(start.checkpoint, createSigner(first)) }),
    ],
    ['an extension line', (start) => ({ ...start, checkpoint: start.checkpoint.replace('\n\n', '\nmore\n\n') })],
    ['nonsense', (start) => ({ ...start, checkpoint: 'nonsense' })],
    [
      'another origin, signed by our key',
      ({ checkpoint, ...start }) => ({ ...start, checkpoint: resign(checkpoint.replace(first, second)) }),
    ],
    [
      'extension lines, signed by our key',
      ({ checkpoint, ...start }) => ({ ...start, checkpoint: resign(checkpoint.replace('\n\n', '\nmore\n\n')) }),
    ],
  ])('%s is refused, and the log can still be started', async (_, change) => {
    const earlier = await createOpenLog()
    await sign(earlier, items(2))
    const start = await toStart(earlier)
    expect(start.frontier.size).toBe(3)
    const { statementLog } = createTestLog({ origins: [first] })
    await expect(statementLog.call({ start: change(start) as never })).rejects.toEqual(withCode('log_refused'))
    expect((await statementLog.call({ start })).log?.from).toBe(3)
  })

  test('before the time is known nothing is started', async () => {
    const assertKnown = () => {
      throw new Error('time_unknown')
    }
    const { statementLog } = createTestLog({ time: { now: () => NOW, assertKnown } })
    await expect(statementLog.call({ start: empty })).rejects.toThrow('time_unknown')
    expect((await statementLog.call({})).log).toBeNull()
  })
})

/** By the key of the first origin, which in life signs no such text. */
function resign(note: string) {
  const key = keyring.deriveLogKey(first)
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  const noteKey = createNoteKey({ name: first, type: 'ed25519', publicKey: new Uint8Array(spki.subarray(-32)) })
  return signNote(parseNote(note).text, [{ key: noteKey, sign: (message) => signByNode(null, message, key) }])
}

function forge(note: string, signer: ReturnType<typeof createSigner>) {
  return signNote(parseNote(note).text, [signer])
}

describe('entries', () => {
  test('of batches in their order, each answer from where the one before ended, under one tree', async () => {
    const log = await createOpenLog()
    const batches = [items(3), items(1), items(2)]
    const answers = await Promise.all(batches.map((batch) => sign(log, batch)))
    expect(answers.map(({ from, entries }) => [from, entries.length])).toEqual([
      [0, 4],
      [4, 1],
      [5, 2],
    ])
    const all = answers.flatMap(({ entries }) => entries).map((entry) => decodeLogEntry(fromHex(entry)))
    expect(all.slice(1)).toEqual(
      batches.flat().map((item) => ({ kind: 'signature', keyId: toHex(bootId), leaf: toLeaf(item), timeMs: NOW })),
    )
    for (const { checkpoint, from, entries } of answers) {
      const size = from + entries.length
      const root = computeFrontierRoot(appendLeaves(emptyFrontier, all.slice(0, size).map(hashLogEntry)))
      expect(parseCheckpoint(parseNote(checkpoint).text)).toMatchObject({ size, root })
    }
  })

  test('a call whose items fell into two batches has the entries of both, and those that came between', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const lost = createSignedItem()
    await sign(log, [lost])
    const mine = items(2)
    const room = statementLog.reserve(mine as never)
    room.hold(mine, 'ab'.repeat(32))
    const batches = mine.map((item) => toBatch([item]))
    statementLog.append(batches[0] as never)
    release(statementLog, { drop: [toLeaf(lost)] })
    statementLog.append(batches[1] as never)
    const appended = await room.collect(mine, batches)
    expect(appended?.from).toBe(2)
    const kinds = appended?.entries.map((entry) => decodeLogEntry(fromHex(entry)).kind)
    expect(kinds).toEqual(['signature', 'dropped', 'signature'])
    expect(parseCheckpoint(parseNote(appended?.checkpoint ?? '').text).size).toBe(5)
  })

  test('one that was dropped before its second batch gets no second entry, and that call fails', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const [twice, mine] = [createSignedItem(), createSignedItem()]
    await sign(log, [twice])
    // The same call once more, within the same millisecond.
    const room = statementLog.reserve([twice, mine] as never)
    room.hold([twice, mine], coordinatorKey)
    release(statementLog, { drop: [toLeaf(twice)] })
    const batch = toBatch([twice, mine])
    statementLog.append(batch)
    await expect(room.collect([twice, mine], [batch])).rejects.toEqual(withCode('log_unavailable'))
    room.close()
    expect((await kindsOf(log)).slice(1)).toEqual(['signature', 'dropped', 'signature'])
    const ends = (await readEntries(log)).slice(1).map((entry) => 'leaf' in entry && entry.leaf)
    expect(ends).toEqual([toLeaf(twice), toLeaf(twice), toLeaf(mine)])
  })

  test('the same statement by two calls at once has an entry for each, and is given to both', async () => {
    const log = await createOpenLog({ limits: { statements: 2 } })
    const item = createSignedItem()
    const [one, two] = await Promise.all([sign(log, [item]), sign(log, [item])])
    const leaves = [toLeaf(item)]
    // It is covered where all of its entries are.
    expect(release(log.statementLog, { ...cosign(one.checkpoint), leaves })).toEqual([null])
    expect(release(log.statementLog, { ...cosign(two.checkpoint), leaves })).toEqual([given])
    release(log.statementLog, { acknowledge: leaves })
    await log.statementLog.settle()
    // Its room was taken once, and is given back once.
    await sign(log, items(2))
    await expect(sign(log, items(1))).rejects.toEqual(withCode('log_unavailable'))
  })

  test('those that a quorum cosigned are forgotten once answered, and the rest is repeated', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const one = await sign(log, items(2))
    await sign(log, items(2))
    release(statementLog, cosign(one.checkpoint))
    const { log: answer } = await statementLog.call({ from: 0 })
    expect(answer).toMatchObject({ from: 3, isOpen: true })
    expect(answer?.entries).toHaveLength(2)
    expect((await statementLog.call({ from: 4 })).log?.entries).toEqual(answer?.entries.slice(1))
    expect((await statementLog.call({ from: 99 })).log).toMatchObject({ from: 5, entries: [] })
  })

  test('a checkpoint that could not be signed is signed for the next who asks', async () => {
    let isBroken = false
    const signCheckpoint: typeof keyWorker.signCheckpoint = async (origin, text) => {
      if (isBroken) throw new Error('broken')
      return keyWorker.signCheckpoint(origin, text)
    }
    const log = await createOpenLog({ keyWorker: { ...keyWorker, signCheckpoint } })
    isBroken = true
    await expect(sign(log, items(1))).rejects.toThrow('broken')
    isBroken = false
    const { log: answer } = await log.statementLog.call({})
    expect(parseCheckpoint(parseNote(answer?.checkpoint ?? '').text).size).toBe(2)
  })
})

describe('release', () => {
  test('a quorum opens the log, and gives statements for what it covers and nothing else', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const [one, two] = [createSignedItem(), createSignedItem()]
    const appended = await sign(log, [one])
    const later = await sign(log, [two])
    const leaves = [toLeaf(two), toLeaf(one), '00'.repeat(32)]
    const { statement, subject } = one as { statement: object; subject: object }
    expect(release(statementLog, { leaves })).toEqual([null, null, null])
    expect(release(statementLog, { ...cosign(appended.checkpoint), leaves })).toEqual([
      null,
      { statement, subject },
      null,
    ])
    expect(release(statementLog, { ...cosign(later.checkpoint), leaves })).toEqual([
      given,
      { statement, subject },
      null,
    ])
  })

  test.each<[string, (checkpoint: string) => object]>([
    ['no cosignature', (note) => ({ checkpoint: note, cosignatures: [] })],
    ['too few', (note) => cosign(note, witnesses.slice(2))],
    ['one of them twice', (note) => cosign(note, [witnesses[0], witnesses[0]] as never)],
    ['one of them twice, at two times', (note) => twice(note)],
    [
      'one of them under two names',
      (note) => cosign(note, [witnesses[0], createSigner('w9', 'cosignature-ed25519', seedOf('w1.example'))] as never),
    ],
    ['strangers', (note) => cosign(note, [witnesses[0], stranger] as never)],
    ['the log itself', (note) => cosign(note, [witnesses[0], createSigner(first)] as never)],
    [
      'a signature of a note in place of a cosignature',
      (note) => cosign(note, [witnesses[0], createSigner('w2.example')] as never),
    ],
    [
      'a cosignature of another checkpoint',
      (note) => ({ ...cosign(note.replace('\n2\n', '\n3\n')), checkpoint: note }),
    ],
    ['one bad signature among three', (note) => spoil(cosign(note, witnesses), 1)],
    [
      'another text under the same cosignatures',
      (note) => ({ ...cosign(note), checkpoint: note.replace('\n2\n', '\n3\n') }),
    ],
    ['an extension line', (note) => ({ ...cosign(note), checkpoint: note.replace('\n\n', '\nmore\n\n') })],
    [
      'another root, cosigned',
      (note) => cosign(note.replace(/\n(.)(.*=)\n\n/, (_, one, rest) => `\n${one === 'A' ? 'B' : 'A'}${rest}\n\n`)),
    ],
    ['a line that is none', (note) => ({ checkpoint: note, cosignatures: ['nonsense'] })],
    ['two lines in one', (note) => ({ checkpoint: note, cosignatures: [cosign(note).cosignatures.join('\n\n')] })],
    ['no note', () => ({ checkpoint: 'nonsense', cosignatures: [] })],
  ])('%s releases nothing', async (_, change) => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { leaves: [toLeaf(item)], ...change(checkpoint) }
    expect(() => release(log.statementLog, request)).toThrow(withCode('log_refused'))
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })).toEqual([given])
  })

  test('a checkpoint of the same log by another boot is not ours, though witnesses cosigned it', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    await sign(log, [item])
    const elsewhere = createTestLog({ bootId: new Uint8Array(16).fill(4) })
    const { log: answer } = await elsewhere.statementLog.call({ start: empty })
    const theirs = cosign(answer?.checkpoint ?? '', witnesses)
    expect(() => release(log.statementLog, { ...theirs, leaves: [toLeaf(item)] })).toThrow(withCode('log_refused'))
  })

  test('another boot is told so', async () => {
    const { statementLog } = await createOpenLog()
    expect(() => release(statementLog, { bootId: '00'.repeat(16) })).toThrow(withCode('boot_unknown'))
  })

  test('to the coordinator that the statement names, and to no other; nor can another drop or acknowledge it', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const leaves = [toLeaf(item)]
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves }, other)).toEqual([null])
    release(log.statementLog, { drop: leaves }, other)
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves })).toEqual([given])
    release(log.statementLog, { acknowledge: leaves }, other)
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves })).toEqual([given])
  })

  test('a vault’s own witnesses must be among those that cosigned', async () => {
    const log = await createOpenLog()
    const needs = { witnesses: [keyOf(witnesses[2] as never)], quorum: 1 }
    const [vault, wallet] = [createSignedItem({ needs }), createSignedItem()]
    const { checkpoint } = await sign(log, [vault, wallet])
    const leaves = [toLeaf(vault), toLeaf(wallet)]
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves })).toEqual([null, given])
    expect(release(log.statementLog, { ...cosign(checkpoint, witnesses.slice(1)), leaves })).toEqual([given, given])
  })

  test('once more is harmless; acknowledged it is gone, and no entry says otherwise', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    const [one] = release(log.statementLog, request)
    expect(release(log.statementLog, request)).toEqual([one])
    release(log.statementLog, { acknowledge: request.leaves })
    expect(release(log.statementLog, request)).toEqual([null])
    log.clock.elapsedMs += 100_000
    log.statementLog.expire()
    await log.statementLog.settle()
    expect(await kindsOf(log)).toEqual([])
  })

  test('dropped it is erased for good, by an entry; released it cannot be dropped', async () => {
    const log = await createOpenLog()
    const [kept, lost] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [kept, lost])
    const [leaves, all] = [[toLeaf(kept)], [toLeaf(kept), toLeaf(lost)]]
    release(log.statementLog, { ...cosign(checkpoint), leaves })
    release(log.statementLog, { drop: all })
    release(log.statementLog, { drop: all })
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves: all })).toEqual([given, null])
    expect(await readEntries(log)).toEqual([{ kind: 'dropped', keyId: toHex(bootId), leaf: toLeaf(lost), timeMs: NOW }])
  })

  test('in one call: what is dropped is not released, and an acknowledgement of what was not released means nothing', async () => {
    const log = await createOpenLog()
    const [one, two] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [one, two])
    const all = [toLeaf(one), toLeaf(two)]
    const request = { ...cosign(checkpoint), leaves: all, drop: [toLeaf(one)], acknowledge: all }
    expect(release(log.statementLog, request)).toEqual([null, given])
  })
})

describe('what nobody fetches', () => {
  test('unreleased after 30 seconds: erased by an entry, though nobody looked', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    log.clock.elapsedMs = 30_000
    expect(release(log.statementLog, request)).toEqual([null])
    expect(await kindsOf(log)).toEqual(['dropped'])
    expect(release(log.statementLog, request)).toEqual([null])
  })

  test('not a moment before, and the host’s clock has no say', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    log.clock.elapsedMs = 29_999
    log.clock.nowMs += 3_600_000
    log.statementLog.expire()
    expect(release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })).toEqual([given])
  })

  test('released and not acknowledged after 60 seconds: reported and forgotten', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    log.clock.elapsedMs = 20_000
    release(log.statementLog, request)
    log.clock.elapsedMs = 79_999
    log.statementLog.expire()
    // Repeating it does not give it more time.
    expect(release(log.statementLog, request)).toEqual([given])
    log.clock.elapsedMs = 80_000
    log.statementLog.expire()
    expect(await kindsOf(log)).toEqual(['unacknowledged'])
    expect(release(log.statementLog, request)).toEqual([null])
  })

  test('what no quote covered is forgotten without an entry', async () => {
    const { statementLog } = await createOpenLog({ limits: { statements: 1 } })
    const item = createSignedItem()
    const room = statementLog.reserve([item] as never)
    room.hold([item], other)
    expect(await room.collect([], [])).toBeNull()
    room.close()
    await statementLog.settle()
    expect(() => statementLog.reserve([item] as never)).not.toThrow()
  })

  test('one that was erased is never made again, though the clock stands still', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    await sign(log, [item])
    expect(log.statementLog.now()).toBe(NOW)
    release(log.statementLog, { drop: [toLeaf(item)] })
    expect(log.statementLog.now()).toBe(NOW + 1)
    await expect(sign(log, [item])).rejects.toEqual(withCode('log_unavailable'))
    await expect(sign(log, [createSignedItem()])).rejects.toEqual(withCode('log_unavailable'))
    await sign(log, [createSignedItem({ signedAtMs: NOW + 1 })])
    expect(await kindsOf(log)).toEqual(['boot', 'signature', 'dropped', 'signature'])
  })
})

describe('full', () => {
  test('of statements, by their number: nothing more is signed until one has gone', async () => {
    const log = await createOpenLog({ limits: { statements: 2 } })
    const two = items(2)
    const { checkpoint } = await sign(log, two)
    await expect(sign(log, items(1))).rejects.toEqual(withCode('log_unavailable'))
    const leaves = two.map(toLeaf)
    release(log.statementLog, { ...cosign(checkpoint), leaves })
    await expect(sign(log, items(1))).rejects.toEqual(withCode('log_unavailable'))
    release(log.statementLog, { acknowledge: leaves.slice(1) })
    await sign(log, items(1))
  })

  test('of statements, by their size', async () => {
    const { statementLog } = await createOpenLog({ limits: { bytes: 10_000 } })
    const large = { content: 'x'.repeat(8_000) } as never
    expect(() => statementLog.reserve([large])).toThrow(withCode('log_unavailable'))
    const room = statementLog.reserve([{} as never, {} as never])
    expect(() => statementLog.reserve([{} as never, {} as never, {} as never])).toThrow(withCode('log_unavailable'))
    room.close()
    room.close()
    expect(() => statementLog.reserve([{} as never, {} as never, {} as never, {} as never])).not.toThrow()
    expect(() => statementLog.reserve([{} as never])).toThrow(withCode('log_unavailable'))
  })

  test('of entries that no quorum has cosigned: those of drops too', async () => {
    const log = await createOpenLog({ limits: { entries: 2 } })
    const item = createSignedItem()
    await sign(log, [item])
    release(log.statementLog, { drop: [toLeaf(item)] })
    const late = createSignedItem({ signedAtMs: NOW + 1 })
    await expect(sign(log, [late])).rejects.toEqual(withCode('log_unavailable'))
    const { log: answer } = await log.statementLog.call({})
    release(log.statementLog, cosign(answer?.checkpoint ?? ''))
    await sign(log, [late])
  })
})

describe('another origin', () => {
  test('erases what waits, begins with the boot, ends the first one for this boot, and opens by its own quorum', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const [waiting, released] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [waiting, released])
    const leaves = [toLeaf(waiting), toLeaf(released)]
    release(statementLog, { ...cosign(checkpoint), leaves: leaves.slice(1) })
    const { log: answer } = await statementLog.call({ start: { ...empty, origin: second } })
    expect(answer).toMatchObject({ origin: second, from: 0, isOpen: false })
    // That they are no more is said here: the other log is left.
    expect(await readEntries(log)).toMatchObject([{ kind: 'boot' }, { kind: 'dropped', leaf: leaves[0] }])
    expect(() => statementLog.assertOpen()).toThrow(withCode('log_unavailable'))
    expect(() => release(statementLog, { ...cosign(checkpoint, witnesses), leaves })).toThrow(withCode('log_refused'))
    await expect(statementLog.call({ start: empty })).rejects.toEqual(withCode('log_refused'))
    release(statementLog, cosign(answer?.checkpoint ?? ''))
    expect(() => statementLog.assertOpen()).not.toThrow()
    log.clock.elapsedMs = 60_000
    statementLog.expire()
    expect((await readEntries(log)).at(-1)).toMatchObject({ kind: 'unacknowledged', leaf: leaves[1] })
  })

  test('what was being signed meanwhile gets no entry there, and its call fails', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    // Later than what is erased, so that only the log's change can be in its way.
    const [one, two] = [createSignedItem(), createSignedItem({ signedAtMs: NOW + 1 })]
    const rooms = [one, two].map((item) => statementLog.reserve([item] as never))
    rooms[0]?.hold([one], other)
    await statementLog.call({ start: { ...empty, origin: second } })
    expect(() => rooms[1]?.hold([two], other)).toThrow(withCode('log_unavailable'))
    const batch = toBatch([one, two])
    statementLog.append(batch)
    await expect(rooms[0]?.collect([one], [batch])).rejects.toEqual(withCode('log_unavailable'))
    for (const room of rooms) room.close()
    expect(await kindsOf(log)).toEqual(['boot'])
    await statementLog.settle()
  })

  test('two other origins at once: one after the other, and no tree twice', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const start = { ...empty, origin: second }
    const [one, two] = await Promise.all([statementLog.call({ start }), statementLog.call({ start })])
    expect(two).toEqual(one)
  })
})

test('settled when the last statement is acknowledged', async () => {
  const log = await createOpenLog()
  const item = createSignedItem()
  const { checkpoint } = await sign(log, [item])
  let isSettled = false
  const settled = log.statementLog.settle().then(() => (isSettled = true))
  release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })
  await Promise.resolve()
  expect(isSettled).toBe(false)
  release(log.statementLog, { acknowledge: [toLeaf(item)] })
  await settled
})

function seedOf(name: string) {
  return new Uint8Array(hash('sha256', name, 'buffer'))
}

/** The second line of one witness, a second later. */
function twice(note: string) {
  const [one, two] = [1, 2].map((timestampS) => cosign(note, witnesses.slice(0, 1), timestampS).cosignatures[0])
  return { checkpoint: note, cosignatures: [one, two] }
}

/** One bit of one signature is another. */
function spoil(request: ReturnType<typeof cosign>, index: number) {
  const note = parseNote(request.checkpoint + request.cosignatures.map((line) => `${line}\n`).join(''))
  const signature = note.signatures[index + 1]
  if (signature === undefined) throw new Error('no such signature')
  const bytes = Uint8Array.from(signature.bytes)
  bytes[20] = (bytes[20] ?? 0) ^ 1
  const signatures = note.signatures.with(index + 1, { ...signature, bytes })
  const [, lines = ''] = formatNote({ ...note, signatures }).split('\n\n')
  return { checkpoint: request.checkpoint, cosignatures: lines.trim().split('\n').slice(1) }
}
