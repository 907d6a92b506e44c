import { hash } from 'node:crypto'
import { formatNote, parseNote } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import {
  bootId,
  coordinatorKey,
  cosign,
  createOpenLog,
  createSignedItem,
  createTestLog,
  fromNothing,
  given,
  keyOf,
  kindsOf,
  NOW,
  noItem,
  origins,
  readEntries,
  release,
  setting,
  sign,
  stranger,
  type TestLog,
  toBatch,
  toLeaf,
  toPlacements,
  withCode,
  witnesses,
} from '../../test/statementLog.ts'

const [first = '', second = ''] = origins
const other = 'ef'.repeat(32)

describe('release', () => {
  test('a quorum opens the log and releases exactly the statements that it covers', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const [one, two] = [createSignedItem(), createSignedItem()]
    const appended = await sign(log, [one])
    const later = await sign(log, [two])
    const leaves = [toLeaf(two), toLeaf(one), '00'.repeat(32)]
    const { statement, subject } = one as { statement: object; subject: object }
    expect(await release(statementLog, { leaves })).toEqual([null, null, null])
    expect(await release(statementLog, { ...cosign(appended.checkpoint), leaves })).toEqual([
      null,
      { statement, subject },
      null,
    ])
    expect(await release(statementLog, { ...cosign(later.checkpoint), leaves })).toEqual([
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
      (note) => ({ ...cosign(note.replace('\n4\n', '\n5\n')), checkpoint: note }),
    ],
    ['one bad signature among three', (note) => spoil(cosign(note, witnesses), 1)],
    [
      'another text under the same cosignatures',
      (note) => ({ ...cosign(note), checkpoint: note.replace('\n4\n', '\n5\n') }),
    ],
    ['an extension line', (note) => ({ ...cosign(note), checkpoint: note.replace('\n\n', '\nmore\n\n') })],
    [
      'another root, cosigned',
      (note) => cosign(note.replace(/\n(.)(.*=)\n\n/, (_, one, rest) => `\n${one === 'A' ? 'B' : 'A'}${rest}\n\n`)),
    ],
    ['an invalid line', (note) => ({ checkpoint: note, cosignatures: ['nonsense'] })],
    ['two lines in one', (note) => ({ checkpoint: note, cosignatures: [cosign(note).cosignatures.join('\n\n')] })],
    ['no note', () => ({ checkpoint: 'nonsense', cosignatures: [] })],
  ])('%s releases nothing', async (_, change) => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { leaves: [toLeaf(item)], ...change(checkpoint) }
    await expect(release(log.statementLog, request)).rejects.toEqual(withCode('log_refused'))
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })).toEqual([given])
  })

  test('if a quorum’s clocks are much later than ours, releases nothing and does not open the log', async () => {
    const lateS = NOW / 1000 + 66
    const closed = createTestLog()
    const { log: started } = await closed.statementLog.call({ start: fromNothing })
    const boot = cosign(started?.checkpoint ?? '', witnesses, lateS)
    await expect(release(closed.statementLog, boot)).rejects.toEqual(withCode('time_unknown'))
    expect(() => closed.statementLog.assertOpen()).toThrow(withCode('log_unavailable'))

    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const leaves = [toLeaf(item)]
    await expect(release(log.statementLog, { ...cosign(checkpoint, witnesses, lateS), leaves })).rejects.toEqual(
      withCode('time_unknown'),
    )
    log.clock.nowMs += 1_000
    expect(await release(log.statementLog, { ...cosign(checkpoint, witnesses, lateS), leaves })).toEqual([given])
  })

  test('erases a statement that a quorum sees minutes after its date: the clock stood still when it was signed', async () => {
    const released = async (lateS: number) => {
      const log = await createOpenLog()
      const item = createSignedItem()
      const { checkpoint } = await sign(log, [item])
      log.clock.nowMs += 1000 * lateS
      const request = { ...cosign(checkpoint, witnesses, NOW / 1000 + lateS), leaves: [toLeaf(item)] }
      const [first] = await release(log.statementLog, request)
      log.clock.nowMs = NOW
      return [first, ...(await release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] }))]
    }
    expect(await released(125)).toEqual([given, given])
    expect(await released(126)).toEqual([null, null])
  })

  describe('with three of four witnesses', () => {
    const four = [...witnesses, createSigner('w4.example', 'cosignature-ed25519')]
    const threeOfFour = { ...setting, witnesses: four.map(keyOf).toSorted(), quorum: 3 }
    const nowS = NOW / 1000
    /** Each of these at a separate time. */
    const cosignAt = (checkpoint: string, timesS: readonly number[]) => ({
      checkpoint,
      cosignatures: timesS.flatMap((timeS, at) => cosign(checkpoint, four.slice(at, at + 1), timeS).cosignatures),
    })
    async function signOne() {
      const log = createTestLog({ setting: threeOfFour })
      const { log: started } = await log.statementLog.call({ start: fromNothing })
      await release(log.statementLog, cosign(started?.checkpoint ?? '', four))
      const item = createSignedItem()
      const { checkpoint } = await sign(log, [item])
      return { ...log, checkpoint, leaves: [toLeaf(item)] }
    }

    test('a back-dated one does not hide that our clock stands still', async () => {
      const { statementLog, clock, checkpoint, leaves } = await signOne()
      const tenDaysS = 864_000
      const request = { ...cosignAt(checkpoint, [nowS + tenDaysS, nowS + tenDaysS, nowS]), leaves }
      await expect(release(statementLog, request)).rejects.toEqual(withCode('time_unknown'))
      // Correcting the clock for the release doesn't help: the statements were dated by the stopped clock.
      clock.nowMs += 1000 * tenDaysS
      expect(await release(statementLog, request)).toEqual([null])
    })

    test.each([
      ['a counted payment', [0]],
      ['another signature', undefined],
    ])(
      'a back-dated one of a vault’s own four, with three of the operator’s: %s is not released a day late',
      async (_, countedFor) => {
        const operators = ['o1', 'o2', 'o3'].map((name) => createSigner(`${name}.example`, 'cosignature-ed25519'))
        const all = [...four, ...operators].map(keyOf).toSorted()
        const { statementLog } = createTestLog({ setting: { ...setting, witnesses: all, quorum: 5 } })
        const { log: started } = await statementLog.call({ start: fromNothing })
        const dated = (note: string, timesS: readonly number[]) => ({
          checkpoint: note,
          cosignatures: [...cosignAt(note, timesS).cosignatures, ...cosign(note, operators, nowS).cosignatures],
        })
        await release(statementLog, dated(started?.checkpoint ?? '', [nowS, nowS, nowS]))
        const needs = { origin: first, witnesses: four.map(keyOf).toSorted(), quorum: 3 }
        const item = { ...createSignedItem({ needs }), ...(countedFor && { countedFor }) }
        const { checkpoint } = await sign({ statementLog }, [item])
        const late = nowS + 86_400
        const request = { ...dated(checkpoint, [late, late, nowS]), leaves: [toLeaf(item)] }
        expect(await release(statementLog, request)).toEqual([null])
      },
    )

    test('a late or back-dated one does not prevent releases', async () => {
      const { statementLog, checkpoint, leaves } = await signOne()
      const request = { ...cosignAt(checkpoint, [nowS + 60, nowS + 60, nowS - 900]), leaves }
      expect(await release(statementLog, request)).toEqual([given])
      expect(statementLog.now()).toBe(NOW)
    })

    test('one dated ahead neither moves our time nor stops us', async () => {
      const { statementLog, checkpoint, leaves } = await signOne()
      const request = { ...cosignAt(checkpoint, [nowS + 864_000, nowS, nowS]), leaves }
      expect(await release(statementLog, request)).toEqual([given])
      expect(statementLog.now()).toBe(NOW)
    })
  })

  test('learns a quorum’s time: the next statement is not dated earlier, even if the clock stands still', async () => {
    const log = await createOpenLog()
    const { checkpoint } = await sign(log, [createSignedItem()])
    const [one, two, three] = witnesses.map((witness, index) => cosign(checkpoint, [witness], NOW / 1000 + 20 * index))
    const cosignatures = [one, two, three].flatMap((each) => each?.cosignatures ?? [])
    await release(log.statementLog, { checkpoint, cosignatures })
    // The third witness can't push the time without others.
    expect(log.statementLog.now()).toBe(NOW + 20_000)
  })

  test('rejects a checkpoint of the same log by another boot, even if it is cosigned', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    await sign(log, [item])
    const elsewhere = createTestLog({ bootId: new Uint8Array(16).fill(4) })
    const { log: answer } = await elsewhere.statementLog.call({ start: fromNothing })
    const theirs = cosign(answer?.checkpoint ?? '', witnesses)
    await expect(release(log.statementLog, { ...theirs, leaves: [toLeaf(item)] })).rejects.toEqual(
      withCode('log_refused'),
    )
  })

  test('returns an error for another boot', async () => {
    const { statementLog } = await createOpenLog()
    await expect(release(statementLog, { bootId: '00'.repeat(16) })).rejects.toEqual(withCode('boot_unknown'))
  })

  test('releases only to the coordinator that the statement names, and only it can drop or acknowledge', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const leaves = [toLeaf(item)]
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves }, other)).toEqual([null])
    await release(log.statementLog, { drop: leaves }, other)
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves })).toEqual([given])
    await release(log.statementLog, { acknowledge: leaves }, other)
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves })).toEqual([given])
  })

  test('requires cosignatures of a vault’s own witnesses', async () => {
    const log = await createOpenLog()
    const needs = { witnesses: [keyOf(witnesses[2] as never)], quorum: 1 }
    const [vault, wallet] = [createSignedItem({ needs }), createSignedItem()]
    const { checkpoint } = await sign(log, [vault, wallet])
    const leaves = [toLeaf(vault), toLeaf(wallet)]
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves })).toEqual([null, given])
    expect(await release(log.statementLog, { ...cosign(checkpoint, witnesses.slice(1)), leaves })).toEqual([
      given,
      given,
    ])
  })

  test('a repeated release is harmless; an acknowledged statement is deleted without an entry', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    const [one] = await release(log.statementLog, request)
    expect(await release(log.statementLog, request)).toEqual([one])
    await release(log.statementLog, { acknowledge: request.leaves })
    expect(await release(log.statementLog, request)).toEqual([null])
    log.clock.elapsedMs += 100_000
    log.statementLog.expire()
    await log.statementLog.waitUntilEmpty()
    expect(await kindsOf(log)).toEqual([])
  })

  test('a dropped statement is erased with an entry; a released one cannot be dropped', async () => {
    const log = await createOpenLog()
    const [kept, lost] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [kept, lost])
    const [leaves, all] = [[toLeaf(kept)], [toLeaf(kept), toLeaf(lost)]]
    await release(log.statementLog, { ...cosign(checkpoint), leaves })
    await release(log.statementLog, { drop: all })
    await release(log.statementLog, { drop: all })
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves: all })).toEqual([given, null])
    expect(await readEntries(log)).toEqual([{ kind: 'dropped', keyId: toHex(bootId), leaf: toLeaf(lost), timeMs: NOW }])
  })

  test('one call does not release what it drops, and ignores an acknowledgement of unreleased statements', async () => {
    const log = await createOpenLog()
    const [one, two] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [one, two])
    const all = [toLeaf(one), toLeaf(two)]
    const request = { ...cosign(checkpoint), leaves: all, drop: [toLeaf(one)], acknowledge: all }
    expect(await release(log.statementLog, request)).toEqual([null, given])
  })
})

describe('before the quote is ready', () => {
  test('a note is not enough: the statement is released with its quote when that is ready', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const quoting = Promise.withResolvers<void>()
    const { checkpoint } = await sign(log, [item], { quoting: quoting.promise })
    const request = { bootId: toHex(bootId), ...cosign(checkpoint), leaves: [toLeaf(item)] }
    let isAnswered = false
    const answering = log.statementLog.release(request, coordinatorKey).finally(() => (isAnswered = true))
    await new Promise(setImmediate)
    expect(isAnswered).toBe(false)
    quoting.resolve()
    expect(await answering).toEqual({ statements: [given], quotes: [{ sequence: 0, quote: 'aa' }] })
  })

  test('returns immediately, without a quote, for statements that the note does not cover', async () => {
    const log = await createOpenLog()
    const [one, two] = [createSignedItem(), createSignedItem()]
    const { checkpoint } = await sign(log, [one])
    await sign(log, [two], { quoting: new Promise(() => {}) })
    const request = { bootId: toHex(bootId), ...cosign(checkpoint), leaves: [toLeaf(two)] }
    expect(await log.statementLog.release(request, coordinatorKey)).toEqual({ statements: [null], quotes: [] })
  })

  test('if the quote fails, drops the statement with an entry and never releases it', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const quoting = Promise.withResolvers<void>()
    const { checkpoint } = await sign(log, [item], { quoting: quoting.promise })
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    const waiting = release(log.statementLog, request)
    quoting.reject(new Error('no quote'))
    expect(await waiting).toEqual([null])
    expect(await release(log.statementLog, request)).toEqual([null])
    expect(await readEntries(log)).toEqual([{ kind: 'dropped', keyId: toHex(bootId), leaf: toLeaf(item), timeMs: NOW }])
    await log.statementLog.waitUntilEmpty()
  })

  test.each<[string, (log: TestLog, leaf: string) => unknown]>([
    ['dropped', ({ statementLog }, leaf) => release(statementLog, { drop: [leaf] })],
    [
      'dropped because the quote took 30 seconds',
      ({ statementLog, clock }) => {
        clock.elapsedMs += 30_000
        statementLog.expire()
      },
    ],
    [
      'ended by the start of another log',
      ({ statementLog }) => statementLog.call({ start: { ...fromNothing, origin: second } }),
    ],
  ])('%s while a release waits: not released', async (_, end) => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const quoting = Promise.withResolvers<void>()
    const { checkpoint } = await sign(log, [item], { quoting: quoting.promise })
    const waiting = release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })
    await end(log, toLeaf(item))
    quoting.resolve()
    expect(await waiting).toEqual([null])
    expect((await kindsOf(log)).at(-1)).toBe('dropped')
  })

  test('a failing second quote of the same statement does not affect the first', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const quoting = Promise.withResolvers<void>()
    await sign(log, [item])
    const { checkpoint } = await sign(log, [item], { quoting: quoting.promise })
    quoting.reject(new Error('no quote'))
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })).toEqual([given])
  })
})

test('a quote takes memory until the last statement of its batch ends', async () => {
  const log = await createOpenLog({ limits: { bytes: 100_000 } })
  const [one, two] = [createSignedItem(), createSignedItem()]
  /** How many more statements fit. */
  const countRoom = () => {
    for (let count = 0; ; count++) {
      try {
        log.statementLog.reserve(Array(count + 1).fill(noItem)).close()
      } catch {
        return count
      }
    }
  }
  const most = countRoom()
  await sign(log, [one, two])
  // 32 KiB equal 15.7 statements.
  expect(most - countRoom()).toBe(2 + 15)
  await sign(log, [one])
  expect(most - countRoom()).toBe(2 + 15)
  await release(log.statementLog, { drop: [toLeaf(one)] })
  expect(most - countRoom()).toBe(1 + 15)
  await release(log.statementLog, { drop: [toLeaf(two)] })
  expect(countRoom()).toBe(most)
})

describe('statements that are not fetched', () => {
  test('are erased with an entry after 30 seconds, even without calls', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    log.clock.elapsedMs = 30_000
    expect(await release(log.statementLog, request)).toEqual([null])
    expect(await kindsOf(log)).toEqual(['dropped'])
    expect(await release(log.statementLog, request)).toEqual([null])
  })

  test('are not erased earlier, regardless of the host’s clock', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    log.clock.elapsedMs = 29_999
    log.clock.nowMs += 3_600_000
    log.statementLog.expire()
    expect(await release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })).toEqual([given])
  })

  test('are reported and deleted if released but not acknowledged after 60 seconds', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    const { checkpoint } = await sign(log, [item])
    const request = { ...cosign(checkpoint), leaves: [toLeaf(item)] }
    log.clock.elapsedMs = 20_000
    await release(log.statementLog, request)
    log.clock.elapsedMs = 79_999
    log.statementLog.expire()
    // Repeating the release doesn't extend the time.
    expect(await release(log.statementLog, request)).toEqual([given])
    log.clock.elapsedMs = 80_000
    log.statementLog.expire()
    expect(await kindsOf(log)).toEqual(['unacknowledged'])
    expect(await release(log.statementLog, request)).toEqual([null])
  })

  test('the time starts with the entry, so a slow quote does not shorten it', async () => {
    const { statementLog, clock } = await createOpenLog()
    const item = createSignedItem()
    const reservation = statementLog.reserve([item] as never)
    reservation.add([item], other)
    clock.elapsedMs = 40_000
    statementLog.expire()
    const batch = toBatch([item])
    statementLog.append(batch)
    clock.elapsedMs = 69_999
    statementLog.expire()
    const { checkpoint = '' } = (await reservation.collect(toPlacements(batch))) ?? {}
    reservation.close()
    expect(await release(statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] }, other)).toEqual([given])
  })

  test('are deleted without an entry if they are in no batch', async () => {
    const { statementLog } = await createOpenLog({ limits: { statements: 1 } })
    const item = createSignedItem()
    const reservation = statementLog.reserve([item] as never)
    reservation.add([item], other)
    expect(await reservation.collect([])).toBeNull()
    reservation.close()
    await statementLog.waitUntilEmpty()
    expect(() => statementLog.reserve([item] as never)).not.toThrow()
  })
})

test('settles when the last statement is acknowledged', async () => {
  const log = await createOpenLog()
  const item = createSignedItem()
  const { checkpoint } = await sign(log, [item])
  let isSettled = false
  const settled = log.statementLog.waitUntilEmpty().then(() => (isSettled = true))
  await release(log.statementLog, { ...cosign(checkpoint), leaves: [toLeaf(item)] })
  await Promise.resolve()
  expect(isSettled).toBe(false)
  await release(log.statementLog, { acknowledge: [toLeaf(item)] })
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

/** One bit of one signature differs. */
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
