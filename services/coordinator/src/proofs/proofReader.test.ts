import { describe, expect, test } from 'vitest'
import { completeProof } from '../../test/proofs/completeProof.ts'
import { createMemoryStore } from '../../test/store/memoryStore.ts'
import type { Proof } from '../store/proofs.ts'
import { createProofReader } from './proofReader.ts'

const { slug } = completeProof
const toSlug = (index: number) => Buffer.from(index.toString(16).padStart(32, '0'), 'hex').toString('base64url')
const confirmed: Proof = { ...completeProof, receipt: Buffer.from('{}') }
const moved: Proof = { ...confirmed, onchainTxHash: `0x${'44'.repeat(32)}`, onchainBlockNumber: 6 }
const final: Proof = { ...moved, isFinal: true }

function create({ maxCacheBytes }: { maxCacheBytes?: number } = {}) {
  const store = createMemoryStore()
  const set = (proof: Proof) => void store.rows.proofs.set(proof.slug, proof)
  set(confirmed)
  const createReader = () => {
    const reader = createProofReader({
      store,
      ipfsGatewayUrl: undefined,
      ...(maxCacheBytes === undefined ? {} : { maxCacheBytes }),
    })
    return async (wanted = slug) => JSON.parse((await reader.read(wanted)).latin1).onchainBlockNumber as unknown
  }
  return { store, set, createReader, read: createReader(), counts: () => [store.proofReads, store.polls.length] }
}

describe('reading proofs', () => {
  test('reads a complete proof once, and checks its state at each read until it is final', async () => {
    const { read, set, counts } = create()
    expect([await read(), await read(), await read()]).toEqual([5, 5, 5])
    expect(counts()).toEqual([1, 2])
    set({ ...confirmed, isFinal: true })
    expect([await read(), counts()]).toEqual([5, [2, 3]])
    expect([await read(), await read(), counts()]).toEqual([5, 5, [2, 3]])
  })

  test('returns a cached, final proof synchronously', async () => {
    const { store, set } = create()
    set(final)
    const reader = createProofReader({ store, ipfsGatewayUrl: undefined })
    const first = await reader.read(slug)
    expect(reader.read(slug)).toBe(first)
  })

  test('never returns the old event after a reorganisation, even from another coordinator', async () => {
    const { read: one, createReader, set } = create()
    const another = createReader()
    expect([await one(), await another()]).toEqual([5, 5])
    set(moved)
    expect([await one(), await another()]).toEqual([6, 6])
    set(confirmed)
    expect([await another(), await one()]).toEqual([5, 5])
    set(final)
    expect([await one(), await another(), await createReader()()]).toEqual([6, 6, 6])
  })

  test('does not use a query that started before the read', async () => {
    const { store, read, set } = create()
    await read()
    const { findProofStates } = store
    const releases: (() => void)[] = []
    store.findProofStates = async (slugs) => {
      const states = await findProofStates(slugs)
      await new Promise<void>((resolve) => releases.push(resolve))
      return states
    }
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    const early = [read()]
    await turn()
    early.push(read())
    await turn()
    expect(releases.length).toBe(2)
    set(moved)
    const late = [read(), read()]
    await turn()
    expect(releases.length).toBe(2)
    for (const release of releases) release()
    expect(await Promise.all(early)).toEqual([5, 5])
    await turn()
    releases.at(-1)?.()
    expect(await Promise.all(late)).toEqual([6, 6])
  })

  test('concurrent reads share queries, and each gets its own proof', async () => {
    const { store, read, set, counts } = create()
    const slugs = Array.from({ length: 300 }, (_, index) => toSlug(index))
    for (const [index, one] of slugs.entries()) set({ ...confirmed, slug: one, onchainBlockNumber: index })
    await Promise.all(slugs.map(read))
    const asked = [...slugs, ...slugs]
    expect(await Promise.all(asked.map(read))).toEqual([...slugs.keys(), ...slugs.keys()])
    expect(counts()).toEqual([300, 3])
    expect(Math.max(...store.polls.map(({ length }) => length))).toBeLessThanOrEqual(256)
    store.rows.proofs.set(slugs[7] ?? '', { ...moved, slug: slugs[7] ?? '', onchainBlockNumber: 1000 })
    expect((await Promise.all(slugs.map(read)))[7]).toBe(1000)
    expect(store.proofReads).toBe(301)
  })

  test.each(['pending_pin', 'pin_failed', 'pending_onchain', 'onchain_failed'] as const)(
    'does not cache a proof that is %s',
    async (status) => {
      const { read, set, counts } = create()
      set({ ...confirmed, status })
      for (let index = 0; index < 3; index++) await read()
      expect(counts()).toEqual([3, 0])
    },
  )

  test('limits the cached bytes and drops the least recently used proof first', async () => {
    const receipt = Buffer.from(JSON.stringify('x'.repeat(8_000)))
    const { read, set, store } = create({ maxCacheBytes: 30_000 })
    const [one, two, three, four] = [1, 2, 3, 4].map(toSlug) as [string, string, string, string]
    for (const each of [one, two, three, four]) set({ ...final, slug: each, receipt })
    for (const each of [one, two, three, one, four]) await read(each)
    expect(store.proofReads).toBe(4)
    for (const each of [one, three, four]) await read(each)
    expect(store.proofReads).toBe(4)
    await read(two)
    expect(store.proofReads).toBe(5)
  })

  test('returns but does not cache a proof larger than the cache', async () => {
    const { read, set, counts } = create({ maxCacheBytes: 100 })
    set(final)
    expect([await read(), await read(), counts()]).toEqual([6, 6, [2, 0]])
  })

  test('without the database it returns cached final proofs, fails for others, and keeps the cache', async () => {
    const { store, read, set } = create()
    const kept = toSlug(1)
    set({ ...final, slug: kept })
    await Promise.all([read(), read(kept)])
    store.isDown = true
    expect(await read(kept)).toBe(6)
    await expect(read()).rejects.toMatchObject({ code: 'database_unavailable' })
    await expect(read(toSlug(2))).rejects.toMatchObject({ code: 'database_unavailable' })
    store.isDown = false
    set(moved)
    expect(await read()).toBe(6)
  })

  test.each([toSlug(9), 'x', '', `${slug}A`, 'AAAAAAAAAAAAAAAAAAAAAB', '__proto__'])(
    'returns proof_not_found for %j each time',
    async (wanted) => {
      const { read } = create()
      for (let index = 0; index < 2; index++) {
        await expect(read(wanted)).rejects.toMatchObject({ code: 'proof_not_found' })
      }
    },
  )

  test('a cached proof that was deleted is not found', async () => {
    const { store, read } = create()
    await read()
    store.rows.proofs.delete(slug)
    await expect(read()).rejects.toMatchObject({ code: 'proof_not_found' })
  })
})
