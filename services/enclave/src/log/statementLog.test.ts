import { createPublicKey, sign as signByNode } from 'node:crypto'
import {
  appendLeaves,
  computeFrontierRoot,
  createInclusionProof,
  createLeafReader,
  createNoteKey,
  decodeLogEntry,
  emptyFrontier,
  type Frontier,
  hashLogEntry,
  openNote,
  parseCheckpoint,
  parseNote,
  parseVkey,
  signNote,
} from '@countersign/log'
import { fromHex, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import {
  bootId,
  configHash,
  coordinatorKey,
  cosign,
  createOpenLog,
  createSignedItem,
  createTestLog,
  fromNothing,
  given,
  keyring,
  keyWorker,
  kindsOf,
  NOW,
  origins,
  readEntries,
  release,
  sign,
  toBatch,
  toLeaf,
  toPlacements,
  withCode,
  witnesses,
} from '../../test/statementLog.ts'

const [first, second] = origins as [string, string]
const other = 'ef'.repeat(32)
const items = (count: number) => Array.from({ length: count }, () => createSignedItem())

/** The frontier of all entries that a log has appended. */
async function toStart(log: ReturnType<typeof createTestLog>, from: Frontier = emptyFrontier) {
  const { log: answer } = await log.statementLog.call({ from: from.size })
  const leaves = (answer?.entries ?? []).map((entry) => hashLogEntry(decodeLogEntry(fromHex(entry))))
  const frontier = appendLeaves(from, leaves)
  const { size, hashes } = frontier
  const level = Math.log2(size & -size)
  const proof = from.size > 0 ? [] : createInclusionProof(createLeafReader(leaves), { index: size - 1, size })
  const table = { entry: answer?.entries.at(-1) ?? '', path: proof.slice(0, level).map(toHex) }
  return { origin: first, checkpoint: answer?.checkpoint ?? '', hashes: hashes.map(toHex), table, frontier }
}

/** The root of an empty table. */
const emptyTable = { kind: 'table', rows: 0, root: '00'.repeat(32), timeMs: NOW } as const

describe('starting a log', () => {
  test('from nothing: the boot is the first entry, signed by the origin’s key, and the log is not open yet', async () => {
    const { statementLog } = createTestLog()
    expect(await statementLog.call({})).toEqual({ bootId: toHex(bootId), log: null })
    const { log } = await statementLog.call({ start: fromNothing })
    expect(log).toMatchObject({ origin: first, from: 0, isOpen: false })
    const entry = { kind: 'boot', bootId: toHex(bootId), configHash: toHex(configHash), timeMs: NOW }
    expect(log?.entries.map((bytes) => decodeLogEntry(fromHex(bytes)))).toEqual([entry, emptyTable])
    const { own, keys } = await statementLog.describe()
    expect(own).toEqual(origins)
    expect(keys.map((key) => parseVkey(key).name)).toEqual(origins)
    const { text } = openNote(log?.checkpoint ?? '', [parseVkey(keys[0] ?? '')])
    expect(parseCheckpoint(text)).toMatchObject({
      origin: first,
      size: 2,
      root: computeFrontierRoot(appendLeaves(emptyFrontier, [entry as never, emptyTable].map(hashLogEntry))),
    })
    expect(() => statementLog.assertOpen()).toThrow(withCode('log_unavailable'))
    expect(() => statementLog.reserve([])).toThrow(withCode('log_unavailable'))
  })

  test('a second start of the same origin returns the first result, and two concurrent starts are one', async () => {
    const { statementLog } = createTestLog()
    const [one, two] = await Promise.all([
      statementLog.call({ start: fromNothing }),
      statementLog.call({ start: fromNothing }),
    ])
    expect(two).toEqual(one)
    const third = await statementLog.call({
      start: { ...fromNothing, checkpoint: 'nonsense', hashes: ['00'.repeat(32)] },
    })
    expect(third).toEqual(one)
  })

  test('continues from a checkpoint of an earlier boot', async () => {
    const earlier = await createOpenLog()
    await sign(earlier, items(4))
    const { frontier, ...start } = await toStart(earlier)
    const later = createTestLog({ bootId: new Uint8Array(16).fill(4) })
    const { log } = await later.statementLog.call({ start })
    expect(log).toMatchObject({ from: 7, isOpen: false })
    const leaves = (log?.entries ?? []).map((entry) => hashLogEntry(decodeLogEntry(fromHex(entry))))
    expect(parseCheckpoint(parseNote(log?.checkpoint ?? '').text)).toMatchObject({
      size: 9,
      root: computeFrontierRoot(appendLeaves(frontier, leaves)),
    })
  })

  test.each<[string, (start: Awaited<ReturnType<typeof toStart>>) => object]>([
    ['an origin that is not ours', (start) => ({ ...start, origin: 'log.example/c' })],
    ['an origin of another enclave of the service', (start) => ({ ...start, origin: second })],
    ['a checkpoint of another log', (start) => ({ ...start, origin: 'log.example/a2' })],
    ['an invented frontier', (start) => ({ ...start, hashes: start.hashes.map(() => '11'.repeat(32)) })],
    ['a frontier of another size', (start) => ({ ...start, hashes: start.hashes.slice(1) })],
    ['no frontier', (start) => ({ ...start, hashes: [] })],
    ['a frontier in another order', (start) => ({ ...start, hashes: start.hashes.toReversed() })],
    ['a frontier of the empty tree', (start) => ({ ...start, checkpoint: null })],
    [
      'another size under the same signature',
      (start) => ({ ...start, checkpoint: start.checkpoint.replace('\n5\n', '\n4\n') }),
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
    expect(start.frontier.size).toBe(5)
    const { statementLog } = createTestLog({ origins: [first] })
    await expect(statementLog.call({ start: change(start) as never })).rejects.toEqual(withCode('log_refused'))
    expect((await statementLog.call({ start })).log?.from).toBe(5)
  })

  test('fails before the time is known', async () => {
    const assertKnown = () => {
      throw new Error('time_unknown')
    }
    const { statementLog } = createTestLog({ time: { now: () => NOW, assertKnown, raise: () => true } })
    await expect(statementLog.call({ start: fromNothing })).rejects.toThrow('time_unknown')
    expect((await statementLog.call({})).log).toBeNull()
  })
})

/** Signed with the first origin's key, which in production never signs such a text. */
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
  test('of batches are in order, and each response starts where the previous one ended', async () => {
    const log = await createOpenLog()
    const batches = [items(3), items(1), items(2)]
    const answers = await Promise.all(batches.map((batch) => sign(log, batch)))
    expect(answers.map(({ from, entries }) => [from, entries.length])).toEqual([
      [0, 6],
      [6, 2],
      [8, 3],
    ])
    const all = answers.flatMap(({ entries }) => entries).map((entry) => decodeLogEntry(fromHex(entry)))
    expect(all.slice(1).filter(({ kind }) => kind !== 'table')).toEqual(
      batches.flat().map((item) => ({ kind: 'signature', keyId: toHex(bootId), leaf: toLeaf(item), timeMs: NOW })),
    )
    for (const { checkpoint, from, entries } of answers) {
      const size = from + entries.length
      const root = computeFrontierRoot(appendLeaves(emptyFrontier, all.slice(0, size).map(hashLogEntry)))
      expect(parseCheckpoint(parseNote(checkpoint).text)).toMatchObject({ size, root })
    }
  })

  test('a call whose items are in two batches has the entries of both and those in between', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const lost = createSignedItem()
    await sign(log, [lost])
    const mine = items(2)
    const reservation = statementLog.reserve(mine as never)
    reservation.add(mine, 'ab'.repeat(32))
    const batches = mine.map((item) => toBatch([item]))
    statementLog.append(batches[0] as never)
    await release(statementLog, { drop: [toLeaf(lost)] })
    statementLog.append(batches[1] as never)
    const appended = await reservation.collect(batches.flatMap(toPlacements))
    expect(appended?.from).toBe(4)
    const kinds = appended?.entries.map((entry) => decodeLogEntry(fromHex(entry)).kind)
    expect(kinds).toEqual(['signature', 'table', 'dropped', 'signature', 'table'])
    expect(parseCheckpoint(parseNote(appended?.checkpoint ?? '').text).size).toBe(9)
  })

  test('a statement dropped before its second batch gets no second entry, and that call fails', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const [twice, mine] = [createSignedItem(), createSignedItem()]
    await sign(log, [twice])
    // The same call again, within the same millisecond.
    const reservation = statementLog.reserve([twice, mine] as never)
    reservation.add([twice, mine], coordinatorKey)
    await release(statementLog, { drop: [toLeaf(twice)] })
    const batch = toBatch([twice, mine])
    statementLog.append(batch)
    await expect(reservation.collect(toPlacements(batch))).rejects.toEqual(withCode('log_unavailable'))
    reservation.close()
    expect((await kindsOf(log)).slice(1)).toEqual(['signature', 'dropped', 'signature'])
    const ends = (await readEntries(log)).slice(1).flatMap((entry) => ('leaf' in entry ? entry.leaf : []))
    expect(ends).toEqual([toLeaf(twice), toLeaf(twice), toLeaf(mine)])
  })

  test('the same statement in two concurrent calls has an entry for each, and both get it', async () => {
    const log = await createOpenLog({ limits: { statements: 2 } })
    const item = createSignedItem()
    const [one, two] = await Promise.all([sign(log, [item]), sign(log, [item])])
    const leaves = [toLeaf(item)]
    // It is covered if all of its entries are.
    expect(await release(log.statementLog, { ...cosign(one.checkpoint), leaves })).toEqual([null])
    expect(await release(log.statementLog, { ...cosign(two.checkpoint), leaves })).toEqual([given])
    await release(log.statementLog, { acknowledge: leaves })
    await log.statementLog.waitUntilEmpty()
    // Its memory is reserved once and freed once.
    await sign(log, items(2))
    await expect(sign(log, items(1))).rejects.toEqual(withCode('log_unavailable'))
  })

  test('are deleted once a quorum has cosigned them and the response was sent; others are repeated', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const one = await sign(log, items(2))
    await sign(log, items(2))
    await release(statementLog, cosign(one.checkpoint))
    const { log: answer } = await statementLog.call({ from: 0 })
    expect(answer).toMatchObject({ from: 5, isOpen: true })
    expect(answer?.entries).toHaveLength(3)
    expect((await statementLog.call({ from: 6 })).log?.entries).toEqual(answer?.entries.slice(1))
    expect((await statementLog.call({ from: 99 })).log).toMatchObject({ from: 8, entries: [] })
  })

  test('signs a checkpoint again for the next caller if signing failed', async () => {
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
    expect(parseCheckpoint(parseNote(answer?.checkpoint ?? '').text).size).toBe(4)
  })
})

describe('full', () => {
  test('limits statements by number, and signs nothing until one has ended', async () => {
    const log = await createOpenLog({ limits: { statements: 2 } })
    const two = items(2)
    const { checkpoint } = await sign(log, two)
    await expect(sign(log, items(1))).rejects.toEqual(withCode('log_unavailable'))
    const leaves = two.map(toLeaf)
    await release(log.statementLog, { ...cosign(checkpoint), leaves })
    await expect(sign(log, items(1))).rejects.toEqual(withCode('log_unavailable'))
    await release(log.statementLog, { acknowledge: leaves.slice(1) })
    await sign(log, items(1))
  })

  test('limits statements by size', async () => {
    const { statementLog } = await createOpenLog({ limits: { bytes: 10_000 } })
    const large = [
      { content: 'x'.repeat(8_000) },
      { kind: 'transaction', txMetadata: { data: `0x${'00'.repeat(3_000)}` } },
    ]
    for (const item of large) {
      expect(() => statementLog.reserve([item as never])).toThrow(withCode('log_unavailable'))
    }
    const strange = { kind: 'transaction', txMetadata: null } as never
    statementLog.reserve([strange]).close()
    const reservation = statementLog.reserve([{} as never, {} as never])
    expect(() => statementLog.reserve([{} as never, {} as never, {} as never])).toThrow(withCode('log_unavailable'))
    reservation.close()
    reservation.close()
    expect(() => statementLog.reserve([{} as never, {} as never, {} as never, {} as never])).not.toThrow()
    expect(() => statementLog.reserve([{} as never])).toThrow(withCode('log_unavailable'))
  })

  test('limits entries without a quorum, including those of drops', async () => {
    const log = await createOpenLog({ limits: { entries: 2 } })
    const item = createSignedItem()
    await sign(log, [item])
    await release(log.statementLog, { drop: [toLeaf(item)] })
    const late = createSignedItem({ signedAtMs: NOW + 1 })
    await expect(sign(log, [late])).rejects.toEqual(withCode('log_unavailable'))
    const { log: answer } = await log.statementLog.call({})
    await release(log.statementLog, cosign(answer?.checkpoint ?? ''))
    await sign(log, [late])
  })
})

describe('another origin', () => {
  test('erases pending statements, starts with the boot, ends the first log for this boot, and opens by its own quorum', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const [waiting, released] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [waiting, released])
    const leaves = [toLeaf(waiting), toLeaf(released)]
    await release(statementLog, { ...cosign(checkpoint), leaves: leaves.slice(1) })
    const { log: answer } = await statementLog.call({ start: { ...fromNothing, origin: second } })
    expect(answer).toMatchObject({ origin: second, from: 0, isOpen: false })
    // The entries are in this log, because the other one is abandoned.
    expect(await readEntries(log)).toMatchObject([{ kind: 'boot' }, { kind: 'dropped', leaf: leaves[0] }])
    expect(() => statementLog.assertOpen()).toThrow(withCode('log_unavailable'))
    await expect(release(statementLog, { ...cosign(checkpoint, witnesses), leaves })).rejects.toEqual(
      withCode('log_refused'),
    )
    await expect(statementLog.call({ start: fromNothing })).rejects.toEqual(withCode('log_refused'))
    await release(statementLog, cosign(answer?.checkpoint ?? ''))
    expect(() => statementLog.assertOpen()).not.toThrow()
    log.clock.elapsedMs = 60_000
    statementLog.expire()
    expect((await readEntries(log)).at(-1)).toMatchObject({ kind: 'unacknowledged', leaf: leaves[1] })
  })

  test('statements that were being signed get no entry there, and their calls fail', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    // Later than the erased ones, so that only the change of the log can reject them.
    const [one, two] = [createSignedItem(), createSignedItem({ signedAtMs: NOW + 1 })]
    const reservations = [one, two].map((item) => statementLog.reserve([item] as never))
    reservations[0]?.add([one], other)
    await statementLog.call({ start: { ...fromNothing, origin: second } })
    expect(() => reservations[1]?.add([two], other)).toThrow(withCode('log_unavailable'))
    const batch = toBatch([one, two])
    statementLog.append(batch)
    await expect(reservations[0]?.collect([{ batch, leafIndex: 0 }])).rejects.toEqual(withCode('log_unavailable'))
    for (const reservation of reservations) reservation.close()
    expect(await kindsOf(log)).toEqual(['boot'])
    await statementLog.waitUntilEmpty()
  })

  test('concurrent starts run in sequence, and a boot that has abandoned a log does not start it again', async () => {
    const { statementLog } = createTestLog()
    const [one, two, three] = await Promise.allSettled(
      [first, second, first].map((origin) => statementLog.call({ start: { ...fromNothing, origin } })),
    )
    expect(one?.status).toBe('fulfilled')
    expect(two).toMatchObject({ value: { log: { origin: second, from: 0 } } })
    expect(three).toMatchObject({ reason: { code: 'log_refused' } })
  })
})
