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

/** Lets all pending promises settle. */
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
  test('notifies immediately and at each change until a terminal status', async () => {
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

  test('notifies of every change in the payload, and of no other', async () => {
    const { store, watch, round } = create()
    store.rows.proofs.set(slug, pinned)
    const { views } = await watch()
    store.rows.proofs.set(slug, { ...pinned, onchainTxHash: `0x${'44'.repeat(32)}` })
    await round()
    expect(views.map(({ latin1 }) => (JSON.parse(latin1) as ProofPayload).onchainTxHash)).toEqual([
      null,
      `0x${'44'.repeat(32)}`,
    ])
    // Not in the payload before the proof is complete.
    store.rows.proofs.set(slug, { ...pinned, onchainTxHash: `0x${'44'.repeat(32)}`, onchainBlockNumber: 7 })
    await round()
    await round()
    expect([views.length, store.proofReads]).toEqual([2, 3])
  })

  test('reads an unchanged proof only once', async () => {
    const { store, watch, round } = create()
    await watch()
    for (let index = 0; index < 5; index++) await round()
    expect([store.proofReads, store.polls.length]).toEqual([1, 5])
  })

  test('polls again only after the previous poll has ended', async () => {
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
    // A new listener doesn't start one either.
    await watch()
    expect(time.delays()).toEqual([])
    release()
    await settle()
    expect(time.delays()).toEqual([250])
    watcher.stop()
  })

  test('polls all proofs with one query, with one entry per proof', async () => {
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

  test('a later listener gets the current state, and so do the others', async () => {
    const { store, watch } = create()
    const first = await watch()
    store.rows.proofs.set(slug, pinned)
    const second = await watch()
    expect([first.statuses(), second.statuses()]).toEqual([['pending_pin', 'pending_onchain'], ['pending_onchain']])
  })

  test('concurrent listeners share one read, and each is notified once', async () => {
    const { store, watch } = create()
    const watches = await Promise.all(Array.from({ length: 50 }, () => watch()))
    expect(watches.map(({ statuses }) => statuses())).toEqual(Array.from({ length: 50 }, () => ['pending_pin']))
    expect(store.proofReads).toBe(1)
  })

  test('polls nothing without listeners', async () => {
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

  test('a listener that leaves during a poll is not notified', async () => {
    const { store, watch, time } = create()
    const [left, stays] = [await watch(), await watch()]
    store.rows.proofs.set(slug, pinned)
    time.pass(1000)
    left.leave()
    await settle()
    expect([left.statuses(), stays.statuses()]).toEqual([['pending_pin'], ['pending_pin', 'pending_onchain']])
  })

  test('notifies once of a terminal proof and stops polling it', async () => {
    const { store, watch, time } = create()
    store.rows.proofs.set(slug, complete)
    const { statuses, leave } = await watch()
    expect([statuses(), time.delays()]).toEqual([['complete'], []])
    leave()
    expect((await watch()).statuses()).toEqual(['complete'])
  })

  test.each([other, 'x', '', `${slug}A`, 'AAAAAAAAAAAAAAAAAAAAAB', '__proto__'])(
    'returns proof_not_found for %j and does not poll it',
    async (wanted) => {
      const { watch, time } = create()
      await expect(watch(wanted)).rejects.toMatchObject({ code: 'proof_not_found' })
      expect(time.delays()).toEqual([])
    },
  )

  test('watches survive a database outage, which is logged once', async () => {
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

  test('a proof that cannot be read does not delay the others', async () => {
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

  test('a slow proof does not delay the rounds of others, and is read once meanwhile', async () => {
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
    // A third party requests one whose receipt IPFS returns slowly.
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

  test('a slow change does not delay the rounds of others', async () => {
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

  test('a proof that repeatedly cannot be read is logged once', async () => {
    const { store, watch, round, time } = create()
    await watch()
    store.rows.proofs.set(slug, pinned)
    store.findProof = () => Promise.reject(new Error('broken'))
    for (let index = 0; index < 3; index++) await round()
    expect(time.lines).toEqual([{ msg: 'Could not read a proof that has changed', code: 'internal' }])
  })

  test('stop ends notifications and queries, and rejects new listeners', async () => {
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
