import { computeCommitment, type ProofStatus, toHex } from '@countersign/protocol'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  config,
  createGate,
  createProof,
  type FakeNetwork,
  html,
  installFakeNetwork,
  json,
  problem,
} from '../../test/client/network.ts'
import { withCode } from '../../test/client/withCode.ts'
import { createProofStore, POLL_INTERVAL_MS } from './proofStore.ts'
import { ServiceClient } from './ServiceClient.ts'

let network: FakeNetwork

beforeEach(() => {
  vi.useFakeTimers()
  network = installFakeNetwork()
  answer('a', 'pending_pin')
  answer('b', 'pending_pin')
})

const answer = (slug: string, status: ProofStatus) => {
  network.routes[`GET /proof/${slug}`] = () => json(createProof(slug, status))
}
const create = () => createProofStore(new ServiceClient(config))
const settle = () => vi.advanceTimersByTimeAsync(0)

describe('§4 useAttestation, without React', () => {
  test('§8 the interval is 4 seconds', () => {
    expect(POLL_INTERVAL_MS).toBe(4000)
  })

  test('polls immediately, then 4 seconds after each response', async () => {
    const gate = createGate<Response>()
    network.routes['GET /proof/a'] = () => gate.opened
    const store = create()
    store.watch('a')
    await settle()
    expect(network.calls).toHaveLength(1)
    expect(store.getSnapshot()).toEqual({ proof: null, loading: true, error: null })

    // The response takes 10 s: the interval counts from its end.
    await vi.advanceTimersByTimeAsync(10_000)
    expect(network.calls).toHaveLength(1)
    gate.open(json(createProof('a')))
    await settle()
    expect(store.getSnapshot()).toEqual({ proof: createProof('a'), loading: false, error: null })

    answer('a', 'pending_onchain')
    await vi.advanceTimersByTimeAsync(3999)
    expect(network.calls).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(network.calls).toHaveLength(2)
    expect(store.getSnapshot().proof?.status).toBe('pending_onchain')
    await vi.advanceTimersByTimeAsync(40_000)
    expect(network.calls).toHaveLength(12)
  })

  test.each(['complete', 'pin_failed', 'onchain_failed'] as const)('stops polling on %s', async (status) => {
    const store = create()
    store.watch('a')
    await settle()
    answer('a', status)
    await vi.advanceTimersByTimeAsync(4000)
    expect(store.getSnapshot().proof?.status).toBe(status)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(network.calls).toHaveLength(2)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('§7 a failed poll sets error and keeps the proof; the next success clears it', async () => {
    const store = create()
    store.watch('a')
    await settle()
    network.routes['GET /proof/a'] = () => html(502)
    await vi.advanceTimersByTimeAsync(4000)
    expect(store.getSnapshot()).toEqual({
      proof: createProof('a'),
      loading: false,
      error: withCode('response_invalid'),
    })
    const gate = createGate<Response>()
    network.routes['GET /proof/a'] = () => gate.opened
    await vi.advanceTimersByTimeAsync(4000)
    expect(store.getSnapshot()).toMatchObject({ loading: true, error: withCode('response_invalid') })
    gate.open(json(createProof('a')))
    await settle()
    expect(store.getSnapshot()).toMatchObject({ loading: false, error: null })
  })

  test('keeps polling an unknown slug', async () => {
    network.routes['GET /proof/a'] = () => problem(404, 'proof_not_found')
    const store = create()
    store.watch('a')
    await vi.advanceTimersByTimeAsync(8000)
    expect(network.calls).toHaveLength(3)
    expect(store.getSnapshot().error).toEqual(withCode('proof_not_found'))
  })

  test('stopped between polls, it sends no more requests and keeps the last proof', async () => {
    const store = create()
    const stop = store.watch('a')
    await settle()
    stop()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(network.calls).toHaveLength(1)
    expect(store.getSnapshot()).toEqual({ proof: createProof('a'), loading: false, error: null })
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([
    ['a success', () => json(createProof('a', 'complete'))],
    ['a failure', () => html(500)],
  ])('stopped during a request, it aborts and drops the late answer (%s)', async (_, late) => {
    const gate = createGate<Response>()
    network.routes['GET /proof/a'] = () => gate.opened
    const store = create()
    const stop = store.watch('a')
    await settle()
    stop()
    expect(store.getSnapshot()).toEqual({ proof: null, loading: false, error: null })
    expect(network.calls[0]?.init.signal?.aborted).toBe(true)
    gate.open(late())
    await vi.advanceTimersByTimeAsync(60_000)
    expect(store.getSnapshot()).toEqual({ proof: null, loading: false, error: null })
    expect(network.calls).toHaveLength(1)
  })

  test('another slug clears proof and error, and drops the old slug’s late answer', async () => {
    const store = create()
    const stop = store.watch('a')
    await settle()
    const gate = createGate<Response>()
    network.routes['GET /proof/a'] = () => gate.opened
    await vi.advanceTimersByTimeAsync(4000)
    stop()
    const stopB = store.watch('b')
    expect(store.getSnapshot()).toEqual({ proof: null, loading: false, error: null })
    await settle()
    gate.open(json(createProof('a', 'complete')))
    await settle()
    expect(store.getSnapshot().proof?.slug).toBe('b')
    stopB()
    stopB()
    store.watch('b')
    expect(store.getSnapshot().proof?.slug).toBe('b')
  })

  test('hides a proof until an opening that arrives later is verified', async () => {
    const half = '00'.repeat(32)
    const store = create()
    const stop = store.watch('a')
    await settle()
    expect(store.getSnapshot().proof?.slug).toBe('a')
    stop()
    store.watch('a', { content: half, signature: half })
    expect(store.getSnapshot().proof).toBeNull()
    await expect.poll(() => store.getSnapshot().error).not.toBeNull()
    expect(store.getSnapshot()).toEqual({ proof: null, loading: false, error: withCode('opening_mismatch') })
  })

  test('reports a proof that the opening does not match, hides it and polls again', async () => {
    const half = '11'.repeat(32)
    const opening = { content: half, signature: half }
    const proof = { ...createProof('a'), kind: 'off-chain' as const }
    network.routes['GET /proof/a'] = () => json(proof)
    const store = create()
    store.watch('a', opening)
    await expect.poll(() => store.getSnapshot().error).not.toBeNull()
    expect(store.getSnapshot()).toEqual({ proof: null, loading: false, error: withCode('opening_mismatch') })
    const txHash = `0x${toHex(computeCommitment(opening))}` as const
    network.routes['GET /proof/a'] = () => json({ ...proof, txHash, status: 'pin_failed' })
    await vi.advanceTimersByTimeAsync(4000)
    expect(store.getSnapshot()).toMatchObject({ proof: { txHash }, loading: false, error: null })
  })
})
