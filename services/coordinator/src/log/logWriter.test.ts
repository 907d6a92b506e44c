import { hash as computeHash } from 'node:crypto'
import type { AppendedEntries } from '@countersign/protocol'
import { beforeEach, describe, expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import { createFakeEnclaveLog, type FakeEnclaveLog } from '../../test/log/enclaveLog.ts'
import { createFakeLogStore } from '../../test/log/logStore.ts'
import { CoordinatorError } from '../errors.ts'
import type { Claim, LogStore } from '../store/logs.ts'
import { createLogWriter } from './logWriter.ts'

const ORIGIN = 'log.example/a'
const hash = computeHash('sha256', ORIGIN, 'hex')

type Part = { appended: AppendedEntries; claims: Claim[]; bootId: string }

/** A writer on rows in memory, and an enclave whose log it has not stored yet. */
async function createRig() {
  const enclave = await startEnclave()
  const store = createFakeLogStore()
  const rig = {
    store,
    enclave,
    /** Writes to the store, in order. */
    written: [] as Parameters<LogStore['appendLog']>[0][],
    lost: [] as string[],
    /** Of every call except the first. */
    failure: undefined as Error | undefined,
    /** Every write waits for this first. */
    gate: Promise.resolve(),
    repeated: [] as number[],
    repeat: async (from: number): Promise<AppendedEntries> => {
      const { log } = await enclave.enclaveLog.call({ from })
      if (log === null) throw new Error('not started')
      return log
    },
    kinds: [] as string[],
  }
  const writer = createLogWriter({
    store: {
      ...store,
      async appendLog(parameters) {
        rig.written.push(parameters)
        await rig.gate
        if (rig.failure !== undefined && rig.written.length > 1) throw rig.failure
        const result = await store.appendLog(parameters)
        return 'lost' in result ? { lost: rig.lost } : result
      },
    },
    clock: { now: () => 0 },
    key: createSigner(ORIGIN).key,
    hash,
    onWritten: ({ kinds }) => rig.kinds.push(...kinds),
  })
  const write = ({ appended, claims, bootId }: Part) =>
    writer.write(appended, {
      bootId,
      claims,
      repeat(from) {
        rig.repeated.push(from)
        return rig.repeat(from)
      },
    })
  return {
    rig,
    writer,
    store,
    enclave,
    /** The enclave's next response, and the claims of its leaves. */
    append(count: number): Part {
      const { leaves, ...appended } = enclave.append(count)
      const claims = leaves.map((leaf): Claim => ({ walletId: 'wallet', digest: `0x${leaf}`, leaf }))
      return { appended, claims, bootId: enclave.bootId }
    },
    /** Passes all of these while the first one is being written. */
    async writeBehind(first: Part, parts: readonly Part[]) {
      const opened = Promise.withResolvers<void>()
      rig.gate = opened.promise
      const begun = write(first)
      await expect.poll(() => rig.written.length).toBe(1)
      const waiting = parts.map(write)
      opened.resolve()
      const [done, ...results] = await Promise.allSettled([begun, ...waiting])
      expect(done.status).toBe('fulfilled')
      return results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.code))
    },
    entries: () => store.logs.get(hash)?.entries.length,
  }
}

async function startEnclave(): Promise<FakeEnclaveLog> {
  const enclave = createFakeEnclaveLog({ own: [ORIGIN], witnesses: ['aa'.repeat(32)], quorum: 1 })
  await enclave.enclaveLog.call({ start: { origin: ORIGIN, checkpoint: null, hashes: [] } })
  return enclave
}

const toLeaves = (parts: readonly Part[]) => parts.flatMap(({ claims }) => claims.map(({ leaf }) => leaf))
const withCheckpoint = (part: Part, { appended }: Part): Part => ({
  ...part,
  appended: { ...part.appended, checkpoint: appended.checkpoint },
})
const unavailable = () => new CoordinatorError('log_unavailable', 'the enclave does not answer')

describe('calls during a write', () => {
  let subject: Awaited<ReturnType<typeof createRig>>
  let first: Part
  beforeEach(async () => {
    subject = await createRig()
    first = { appended: await subject.rig.repeat(0), claims: [], bootId: subject.enclave.bootId }
  })
  /** Of each call after the first. */
  const calls = () =>
    subject.rig.written.slice(1).map(({ bootId, from, checkpoint, claims }) => ({
      bootId,
      from,
      size: checkpoint.size,
      leaves: claims.map(({ leaf }) => leaf),
    }))

  test('are written together, with all claims', async () => {
    const parts = [subject.append(2), subject.append(1), subject.append(3)]
    expect(await subject.writeBehind(first, parts.toReversed())).toEqual([[], [], []])
    expect(calls()).toEqual([{ bootId: first.bootId, from: 1, size: 7, leaves: toLeaves(parts) }])
    expect(subject.store.claims).toEqual(toLeaves(parts))
    expect(subject.rig.kinds).toEqual(['boot', ...Array(6).fill('signature')])
    expect(subject.writer.newest).toEqual(expect.objectContaining({ size: 7, note: parts[2]?.appended.checkpoint }))
  })

  test('only the one that contradicts the log fails', async () => {
    const forger = await startEnclave()
    forger.current = structuredClone(subject.enclave.current)
    const parts = [subject.append(1), subject.append(1)]
    const { leaves: _, ...appended } = forger.append(2)
    const contrary: Part = { appended, claims: [], bootId: first.bootId }
    const [one, two] = parts as [Part, Part]
    expect(await subject.writeBehind(first, [one, contrary, two])).toEqual([[], 'log_conflict', []])
    expect(subject.entries()).toBe(3)
    expect(subject.store.claims).toEqual(toLeaves(parts))
  })

  test('only the one whose checkpoint does not match its entries fails, without a claim', async () => {
    const parts = [subject.append(2), subject.append(1)]
    const bad = withCheckpoint(subject.append(1), first)
    expect(await subject.writeBehind(first, [...parts, bad])).toEqual([[], [], 'log_malformed'])
    expect(subject.entries()).toBe(4)
    expect(subject.store.claims).toEqual(toLeaves(parts))
  })

  test('does not read a checkpoint that a longer response covers', async () => {
    const early = withCheckpoint(subject.append(2), first)
    const all = { ...subject.append(1), appended: await subject.rig.repeat(1) }
    expect(await subject.writeBehind(first, [early, all])).toEqual([[], []])
    expect(calls()).toMatchObject([{ from: 1, size: 4 }])
  })

  test('every caller gets the lost claims of the write', async () => {
    const parts = [subject.append(2), subject.append(1)]
    const lost = [toLeaves(parts)[1] as string]
    subject.rig.lost = lost
    expect(await subject.writeBehind(first, parts)).toEqual([lost, lost])
    expect(calls()).toHaveLength(1)
  })

  test('calls of two boots are written separately', async () => {
    const [before, after] = [subject.append(2), { ...subject.append(1), bootId: 'b0'.repeat(16) }]
    expect(await subject.writeBehind(first, [after, before])).toEqual([[], []])
    expect(calls()).toEqual([
      { bootId: first.bootId, from: 1, size: 3, leaves: toLeaves([before]) },
      { bootId: 'b0'.repeat(16), from: 3, size: 4, leaves: toLeaves([after]) },
    ])
  })

  test('a failing boot does not fail the other', async () => {
    const [before, after] = [
      withCheckpoint(subject.append(2), first),
      { ...subject.append(1), bootId: 'b0'.repeat(16) },
    ]
    expect(await subject.writeBehind(first, [before, after])).toEqual(['log_malformed', []])
    expect(subject.rig.repeated).toEqual([1])
    expect(subject.entries()).toBe(4)
  })

  test('waits once for an enclave that does not return missing entries, and claims nothing', async () => {
    subject.append(1)
    const parts = [subject.append(1), subject.append(1), subject.append(1)]
    subject.rig.repeat = () => Promise.reject(unavailable())
    expect(await subject.writeBehind(first, parts)).toEqual(Array(3).fill('log_unavailable'))
    expect(subject.rig.repeated).toEqual([1])
    expect(subject.store.claims).toEqual([])
  })

  test('also waits only once if one call fails separately', async () => {
    subject.append(1)
    const parts = [subject.append(1), subject.append(1), withCheckpoint(subject.append(1), first)]
    subject.rig.repeat = () => Promise.reject(unavailable())
    expect(await subject.writeBehind(first, parts)).toEqual(Array(3).fill('log_unavailable'))
    expect(subject.rig.repeated).toEqual([1])
  })

  test.each([
    ['database_unavailable', new CoordinatorError('database_unavailable', 'the database is away')],
    ['a code of the database', Object.assign(new Error('a deadlock'), { code: '40P01' })],
  ])('fails together, after one call, with %s', async (_, failure) => {
    const parts = [subject.append(1), subject.append(1), subject.append(1)]
    subject.rig.failure = failure
    expect(await subject.writeBehind(first, parts)).toEqual(Array(3).fill(failure.code))
    expect(calls()).toHaveLength(1)
  })
})
