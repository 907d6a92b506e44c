import type { ProofPayload } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createManualTime } from '../../test/manualTime.ts'
import { completeProof } from '../../test/proofs/completeProof.ts'
import { createMemoryStore } from '../../test/store/memoryStore.ts'
import type { Proof } from '../store/proofs.ts'
import type { ProofView } from './proofView.ts'
import { createProofWatcher } from './watchProof.ts'

const slug = 'AAAAAAAAAAAAAAAAAAAAAA'
const other = 'AAAAAAAAAAAAAAAAAAAAAQ'
const complete: Proof = { ...completeProof, slug }
const pinned: Proof = { ...complete, status: 'pending_onchain', onchainTxHash: null, onchainBlockNumber: null }
const pending: Proof = { ...pinned, status: 'pending_pin', ipfsCid: null }

/** All promises that can settle have settled. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

function create({ pollMs }: { pollMs?: number } = {}) {
  const store = createMemoryStore()
  const time = createManualTime(new Date(0))
  store.rows.proofs.set(slug, pending)
  const poll = pollMs === undefined ? {} : { pollMs }
  const watcher = createProofWatcher({
    store,
    ipfsGatewayUrl: undefined,
    schedule: time.schedule,
    log: time.log,
    ...poll,
  })

  async function watch(wanted = slug) {
    const views: ProofView[] = []
    const leave = await watcher.watch({ slug: wanted, onView: (view) => views.push(view) })
    return { views, leave, statuses: () => views.map(({ status }) => status) }
  }
  async function round() {
    time.pass(pollMs ?? 1000)
    await settle()
  }
  return { store, time, watcher, watch, round }
}

describe('watching a proof', () => {
  test('it is told at once as it is, then at each change, and no more after a terminal state', async () => {
    const { store, watch, round, time } = create()
    const { statuses } = await watch()
    expect(statuses()).toEqual(['pending_pin'])
    await round()
    expect(statuses()).toEqual(['pending_pin'])
    store.rows.proofs.set(slug, pinned)
    await round()
    store.rows.proofs.set(slug, complete)
    await round()
    expect(statuses()).toEqual(['pending_pin', 'pending_onchain', 'complete'])
    expect(time.delays()).toEqual([])
    store.rows.proofs.set(slug, { ...complete, onchainBlockNumber: 6 })
    await round()
    expect(statuses().length).toBe(3)
  })

  test('a change of anything in the payload is told; one that nobody can see is not', async () => {
    const { store, watch, round } = create()
    store.rows.proofs.set(slug, pinned)
    const { views } = await watch()
    store.rows.proofs.set(slug, { ...pinned, onchainTxHash: `0x${'44'.repeat(32)}` })
    await round()
    expect(views.map(({ latin1 }) => (JSON.parse(latin1) as ProofPayload).onchainTxHash)).toEqual([
      null,
      `0x${'44'.repeat(32)}`,
    ])
    // Not told before the proof is complete.
    store.rows.proofs.set(slug, { ...pinned, onchainTxHash: `0x${'44'.repeat(32)}`, onchainBlockNumber: 7 })
    await round()
    await round()
    expect([views.length, store.proofReads]).toEqual([2, 3])
  })

  test('a proof that does not change is read whole once, however often it is looked at', async () => {
    const { store, watch, round } = create()
    await watch()
    for (let index = 0; index < 5; index++) await round()
    expect([store.proofReads, store.polls.length]).toEqual([1, 5])
  })

  test('the next look comes a while after the last has ended, never beside it', async () => {
    const { store, watch, time, watcher } = create({ pollMs: 250 })
    let release = () => {}
    const { findProofStates } = store
    await watch()
    expect(time.delays()).toEqual([250])
    store.findProofStates = (slugs) =>
      new Promise((resolve) => (release = resolve as () => void)).then(() => findProofStates(slugs))
    time.pass(250)
    await settle()
    expect(time.delays()).toEqual([])
    // One who comes meanwhile starts none either.
    await watch()
    expect(time.delays()).toEqual([])
    release()
    await settle()
    expect(time.delays()).toEqual([250])
    watcher.stop()
  })

  test('one query for all that are watched; listeners of one proof share a place in it', async () => {
    const { store, watch, round } = create()
    store.rows.proofs.set(other, { ...pending, slug: other })
    const watches = [await watch(), await watch(), await watch(other)]
    await round()
    expect(store.polls).toEqual([[slug, other]])
    const before = store.proofReads
    store.rows.proofs.set(slug, pinned)
    await round()
    expect(watches.map(({ statuses }) => statuses().length)).toEqual([2, 2, 1])
    expect(store.proofReads).toBe(before + 1)
  })

  test('one who comes later is told what is, not what was; and so are the others', async () => {
    const { store, watch } = create()
    const first = await watch()
    store.rows.proofs.set(slug, pinned)
    const second = await watch()
    expect([first.statuses(), second.statuses()]).toEqual([['pending_pin', 'pending_onchain'], ['pending_onchain']])
  })

  test('many who come at one moment share one read, and each is told once', async () => {
    const { store, watch } = create()
    const watches = await Promise.all(Array.from({ length: 50 }, () => watch()))
    expect(watches.map(({ statuses }) => statuses())).toEqual(Array.from({ length: 50 }, () => ['pending_pin']))
    expect(store.proofReads).toBe(1)
  })

  test('nobody listens: nothing is asked', async () => {
    const { store, watch, round, time } = create()
    expect(time.delays()).toEqual([])
    const [first, second] = [await watch(), await watch()]
    first.leave()
    first.leave()
    expect(time.delays()).toEqual([1000])
    second.leave()
    expect(time.delays()).toEqual([])
    await round()
    expect(store.polls).toEqual([])
  })

  test('who leaves while a look is under way is told nothing more', async () => {
    const { store, watch, time } = create()
    const [left, stays] = [await watch(), await watch()]
    store.rows.proofs.set(slug, pinned)
    time.pass(1000)
    left.leave()
    await settle()
    expect([left.statuses(), stays.statuses()]).toEqual([['pending_pin'], ['pending_pin', 'pending_onchain']])
  })

  test('a terminal proof is told once and never looked at again', async () => {
    const { store, watch, time } = create()
    store.rows.proofs.set(slug, complete)
    const { statuses, leave } = await watch()
    expect([statuses(), time.delays()]).toEqual([['complete'], []])
    leave()
    expect((await watch()).statuses()).toEqual(['complete'])
  })

  test.each([other, 'x', '', `${slug}A`, 'AAAAAAAAAAAAAAAAAAAAAB', '__proto__'])(
    'no proof %j: proof_not_found, and no look for it later',
    async (wanted) => {
      const { watch, time } = create()
      await expect(watch(wanted)).rejects.toMatchObject({ code: 'proof_not_found' })
      expect(time.delays()).toEqual([])
    },
  )

  test('a database that is away for a while: watches go on, and the log has one line for it', async () => {
    const { store, watch, round, time } = create()
    const { statuses } = await watch()
    store.isDown = true
    for (let index = 0; index < 3; index++) await round()
    await expect(watch()).rejects.toMatchObject({ code: 'database_unavailable' })
    store.rows.proofs.set(slug, pinned)
    store.isDown = false
    await round()
    expect(statuses()).toEqual(['pending_pin', 'pending_onchain'])
    expect(time.lines).toEqual([{ msg: 'Could not read changes of proofs', code: 'database_unavailable' }])
  })

  test('a proof that cannot be read does not keep the others from being told', async () => {
    const { store, watch, round } = create()
    store.rows.proofs.set(other, { ...pending, slug: other })
    const [broken, sound] = [await watch(), await watch(other)]
    store.rows.proofs.set(slug, pinned)
    store.rows.proofs.set(other, { ...pinned, slug: other })
    const { findProof } = store
    store.findProof = (wanted) => (wanted === slug ? Promise.reject(new Error('broken')) : findProof(wanted))
    await round()
    expect([broken.statuses(), sound.statuses()]).toEqual([['pending_pin'], ['pending_pin', 'pending_onchain']])
    store.findProof = findProof
    await round()
    expect(broken.statuses()).toEqual(['pending_pin', 'pending_onchain'])
  })

  test('a proof that takes long to read holds up nobody else’s rounds, and is read once meanwhile', async () => {
    const { store, watch, round } = create()
    store.rows.proofs.set(other, { ...pending, slug: other })
    const { statuses } = await watch()
    const { findProof } = store
    const { promise: slow, resolve } = Promise.withResolvers<void>()
    let reads = 0
    store.findProof = async (wanted) => {
      if (wanted === other) {
        reads += 1
        await slow
      }
      return findProof(wanted)
    }
    // A stranger asks for one whose receipt IPFS is slow to give.
    const late = watch(other)
    store.rows.proofs.set(slug, pinned)
    await round()
    store.rows.proofs.set(slug, complete)
    await round()
    expect(statuses()).toEqual(['pending_pin', 'pending_onchain', 'complete'])
    expect(reads).toBe(1)
    resolve()
    expect((await late).statuses()).toEqual(['pending_pin'])
  })

  test('a change that takes long to read holds up nobody else’s rounds either', async () => {
    const { store, watch, round, time } = create()
    store.rows.proofs.set(other, { ...pending, slug: other })
    const [{ statuses }, slowly] = [await watch(), await watch(other)]
    const { findProof } = store
    const { promise: slow, resolve } = Promise.withResolvers<void>()
    store.findProof = (wanted) => (wanted === other ? slow.then(() => findProof(wanted)) : findProof(wanted))
    store.rows.proofs.set(other, { ...pinned, slug: other })
    await round()
    store.rows.proofs.set(slug, pinned)
    await round()
    expect([statuses(), slowly.statuses()]).toEqual([['pending_pin', 'pending_onchain'], ['pending_pin']])
    resolve()
    await settle()
    expect(slowly.statuses()).toEqual(['pending_pin', 'pending_onchain'])
    expect(time.lines).toEqual([])
  })

  test('a proof that cannot be read is one line of the log, however often it is tried', async () => {
    const { store, watch, round, time } = create()
    await watch()
    store.rows.proofs.set(slug, pinned)
    store.findProof = () => Promise.reject(new Error('broken'))
    for (let index = 0; index < 3; index++) await round()
    expect(time.lines).toEqual([{ msg: 'Could not read a proof that has changed', code: 'internal' }])
  })

  test('stopped: nobody is told more, nothing is asked, and one who comes is refused', async () => {
    const { store, watch, watcher, round, time } = create()
    const { statuses } = await watch()
    const late = watch(slug)
    watcher.stop()
    await expect(late).rejects.toMatchObject({ code: 'shutting_down' })
    store.rows.proofs.set(slug, pinned)
    await round()
    expect([statuses(), time.delays(), store.polls]).toEqual([['pending_pin'], [], []])
    await expect(watch()).rejects.toMatchObject({ code: 'shutting_down' })
    expect(time.delays()).toEqual([])
  })
})
