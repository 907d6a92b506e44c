import { ServiceError, type SignResult } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createGate } from '../../test/client/network.ts'
import { createSignStore } from './createStore.ts'

const one: SignResult = { txHash: '0x01', attestationSlug: 'one' }
const two: SignResult = { txHash: '0x02', attestationSlug: 'two' }

describe('§4 useSign, without React', () => {
  test('is pending until the call resolves; lastResult is the latest success', async () => {
    const store = createSignStore()
    expect(store.getSnapshot()).toEqual({ pending: false, error: null, lastResult: null })
    const gate = createGate<SignResult>()
    const result = store.run(() => gate.opened)
    expect(store.getSnapshot().pending).toBe(true)
    gate.open(one)
    expect(await result).toEqual(one)
    expect(store.getSnapshot()).toEqual({ pending: false, error: null, lastResult: one })
  })

  test('rejects and sets error until the next call; keeps lastResult', async () => {
    const store = createSignStore()
    await store.run(async () => one)
    const error = new ServiceError('rpc_failed', 'no')
    await expect(store.run(() => Promise.reject(error))).rejects.toBe(error)
    expect(store.getSnapshot()).toEqual({ pending: false, error, lastResult: one })
    const gate = createGate<SignResult>()
    const next = store.run(() => gate.opened)
    expect(store.getSnapshot()).toEqual({ pending: true, error: null, lastResult: one })
    gate.open(two)
    await next
    expect(store.getSnapshot().lastResult).toEqual(two)
  })

  test('is pending until the last of concurrent calls ends', async () => {
    const store = createSignStore()
    const first = createGate<SignResult>()
    const second = createGate<SignResult>()
    const calls = [store.run(() => first.opened), store.run(() => second.opened)]
    second.fail(new ServiceError('rpc_failed', 'no'))
    await expect(calls[1]).rejects.toThrow('no')
    expect(store.getSnapshot()).toMatchObject({ pending: true, error: { code: 'rpc_failed' } })
    first.open(one)
    await calls[0]
    expect(store.getSnapshot()).toMatchObject({ pending: false, lastResult: one })
  })

  test('turns any thrown value into one ServiceError for error and rejection', async () => {
    const store = createSignStore()
    const cause = new TypeError('surprise')
    const rejected = await store.run(() => Promise.reject(cause)).catch((error: unknown) => error)
    expect(rejected).toBeInstanceOf(ServiceError)
    expect(rejected).toMatchObject({ code: 'internal', cause })
    expect(store.getSnapshot().error).toBe(rejected)
  })
})
