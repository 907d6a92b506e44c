import { decodeLogEntry, type StatementEntry } from '@countersign/log'
import { fromHex, toHex } from '@countersign/protocol'
import { createRandom } from '@countersign/testing'
import { expect, test } from 'vitest'
import {
  bootId,
  configHash,
  coordinatorKey,
  cosign,
  createOpenLog,
  createSignedItem,
  fromNothing,
  NOW,
  noItem,
  origins,
  toLeaf,
} from '../../test/statementLog.ts'
import { EnclaveError } from '../errors.ts'
import { createBatcher } from '../sign/batch.ts'

const SEEDS = Array.from({ length: 24 }, (_, index) => index + 1)
const STEPS = 120
/** The number of statements over all seeds. */
const reached = { given: 0, dropped: 0 }

type Note = ReturnType<typeof cosign>

/** A real batcher and log, with quotes that end when the test says so, and entries as a witness sees them. */
async function setUp(endedLimit: number) {
  const { statementLog, clock } = await createOpenLog({ limits: { ended: endedLimit, statements: 60 } })
  const quotes: PromiseWithResolvers<{ quote: Uint8Array<ArrayBuffer> }>[] = []
  const quoted = new Set<string>()
  /** By origin. */
  const entries = new Map<string, Map<number, StatementEntry>>()
  const given = new Set<string>()
  const batcher = createBatcher({
    quoteSource: {
      mode: 'mock',
      getQuote() {
        const quote = Promise.withResolvers<{ quote: Uint8Array<ArrayBuffer> }>()
        quotes.push(quote)
        return quote.promise
      },
    },
    bootId,
    configHash,
    limit: 3,
    log: { info() {}, warn() {}, error() {} },
    onStart(batch) {
      batch.signed.then(
        () => batch.leaves.forEach((leaf) => void quoted.add(leaf)),
        () => {},
      )
      statementLog.append(batch)
    },
  })

  /** Reads the entries before they may be deleted, and gets them cosigned. */
  async function read(): Promise<Note> {
    const { log } = await statementLog.call({})
    if (log === null) throw new Error('no log')
    const known = entries.get(log.origin) ?? new Map<number, StatementEntry>()
    entries.set(log.origin, known)
    for (const [offset, hex] of log.entries.entries()) {
      const entry = decodeLogEntry(fromHex(hex))
      if ('leaf' in entry) known.set(log.from + offset, entry)
    }
    return cosign(log.checkpoint)
  }

  /** Like a call of `sign`. It may fail if its statements end meanwhile. */
  async function sign(items: readonly ReturnType<typeof createSignedItem>[]) {
    const reservation = statementLog.reserve(items.map(() => noItem))
    try {
      reservation.add(items, coordinatorKey)
      await reservation.collect(await Promise.all(items.map(({ leaf }) => batcher.add(leaf))))
    } finally {
      reservation.close()
    }
  }

  const tell = (request: object) => statementLog.release({ bootId: toHex(bootId), ...request }, coordinatorKey)

  async function release(note: Note, leaves: readonly string[]) {
    const [origin = '', size] = note.checkpoint.split('\n')
    const { statements } = await tell({ ...note, leaves })
    for (const leaf of leaves.filter((_, index) => statements[index] !== null)) {
      const covered = [...(entries.get(origin) ?? [])].filter(([index]) => index < Number(size))
      const isCovered = covered.some(([, entry]) => entry.kind === 'signature' && entry.leaf === leaf)
      // A released statement may be released again under a note of a later log.
      expect([quoted.has(leaf), isCovered || given.has(leaf)]).toEqual([true, true])
      given.add(leaf)
    }
  }

  return { statementLog, clock, quotes, entries, given, read, sign, tell, release }
}

const ifRefused = (error: unknown) => {
  if (!(error instanceof EnclaveError)) throw error
}

test.each(SEEDS)('in any order of calls, quotes and time, a dropped statement is never released (%i)', async (seed) => {
  const random = createRandom(seed)
  const pick = <Item>(list: readonly Item[]) => list[Math.floor(random() * list.length)] as Item
  const parts = await setUp(pick([4, 16_384]))
  const { statementLog, clock, quotes, entries, given, read, sign, tell, release } = parts
  const items = Array.from({ length: 12 }, (_, index) => createSignedItem({ signedAtMs: NOW + (index % 4) }))
  const pickSome = () => [...new Set(Array.from({ length: 4 }, () => pick(items)))]
  const calls: Promise<void>[] = []
  let note = await read()

  const steps: (() => unknown)[] = [
    ...Array(6).fill(() => calls.push(sign(pickSome()).catch(ifRefused))),
    ...Array(6).fill(async () => {
      // Sometimes an earlier one.
      if (random() < 0.7) note = await read()
      calls.push(release(note, pickSome().map(toLeaf)).catch(ifRefused))
    }),
    ...Array(3).fill(() => {
      if (random() < 0.6) quotes.shift()?.resolve({ quote: new Uint8Array(1) })
      else quotes.shift()?.reject(new Error('no quote'))
    }),
    () => tell({ drop: [toLeaf(pick(items))] }),
    () => tell({ acknowledge: [toLeaf(pick(items))] }),
    () => {
      clock.elapsedMs += pick([10_000, 31_000, 61_000])
      statementLog.expire()
    },
  ]
  const startsOtherAt = Math.floor(random() * 3 * STEPS)
  for (let step = 0; step < STEPS; step++) {
    await pick(steps)()
    if (step === startsOtherAt) {
      await read()
      await statementLog.call({ start: { ...fromNothing, origin: pick(origins.slice(1)) } })
      await tell(await read())
    }
    if (random() < 0.5) await new Promise(setImmediate)
    await read()
  }
  for (let left = items.length * STEPS; left > 0 && quotes.length > 0; left--) {
    quotes.shift()?.resolve({ quote: new Uint8Array(1) })
    await new Promise(setImmediate)
  }
  await Promise.all(calls)
  for (let time = 0; time < 2; time++) {
    clock.elapsedMs += 61_000
    statementLog.expire()
  }
  await statementLog.waitUntilEmpty()
  await read()

  const all = origins.flatMap((origin) =>
    [...(entries.get(origin) ?? [])].sort(([left], [right]) => left - right).map(([, entry]) => entry),
  )
  const stories = [...Map.groupBy(all, ({ leaf }) => leaf)]
  for (const [leaf, story] of stories) {
    const kinds = story.map(({ kind }) => kind)
    expect(kinds[0]).toBe('signature')
    expect(kinds.lastIndexOf('dropped')).toBe(given.has(leaf) ? -1 : kinds.length - 1)
  }
  reached.given += given.size
  reached.dropped += stories.length - given.size
})

test('the orders above release some statements and drop others', () => {
  expect([reached.given > 20, reached.dropped > 20]).toEqual([true, true])
})
