import { afterEach, describe, expect, test, vi } from 'vitest'
import { createGate } from '../../test/client/network.ts'
import { withSendLock } from './sendLock.ts'

const key = { address: '0xAbCdEf0000000000000000000000000000000001', chainId: 1 } as const

afterEach(() => vi.unstubAllGlobals())

/** Web Locks of one origin, as in the standard. */
function createLocks() {
  const held: string[] = []
  let tail: Promise<unknown> = Promise.resolve()
  return {
    held,
    request: (name: string, task: () => Promise<unknown>) => {
      const result = tail.then(() => {
        held.push(name)
        return task()
      })
      tail = result.catch(() => {})
      return result
    },
  }
}

describe.each([
  ['with Web Locks', () => vi.stubGlobal('navigator', { locks: createLocks() })],
  ['without Web Locks', () => vi.stubGlobal('navigator', {})],
  ['without a navigator', () => vi.stubGlobal('navigator', undefined)],
  [
    'with Web Locks that reject, as in a sandboxed frame',
    () =>
      vi.stubGlobal('navigator', { locks: { request: () => Promise.reject(new DOMException('no', 'SecurityError')) } }),
  ],
])('%s', (_, prepare) => {
  test('runs one task at a time in the order of the calls, ignoring the case of the address', async () => {
    prepare()
    const gate = createGate()
    const seen: string[] = []
    const first = withSendLock(key, async () => {
      seen.push('first begins')
      await gate.opened
      seen.push('first ends')
      return 1
    })
    const second = withSendLock({ ...key, address: key.address.toLowerCase() as `0x${string}` }, async () => {
      seen.push('second')
      return 2
    })
    await expect.poll(() => seen).toEqual(['first begins'])
    gate.open()
    expect(await Promise.all([first, second])).toEqual([1, 2])
    expect(seen).toEqual(['first begins', 'first ends', 'second'])
  })

  test('rejects only the caller of a failed task, and runs each task once', async () => {
    prepare()
    const failing = vi.fn(async () => {
      throw new Error('first')
    })
    const first = withSendLock(key, failing)
    const second = withSendLock(key, async () => 2)
    await expect(first).rejects.toThrow('first')
    expect(await second).toBe(2)
    expect(failing).toHaveBeenCalledTimes(1)
  })
})

test('does not wait for another chain or wallet', async () => {
  vi.stubGlobal('navigator', {})
  const gate = createGate()
  const first = withSendLock(key, () => gate.opened)
  expect(await withSendLock({ ...key, chainId: 2 }, async () => 'chain')).toBe('chain')
  expect(await withSendLock({ ...key, address: '0x02' }, async () => 'wallet')).toBe('wallet')
  gate.open()
  await first
})

test('uses a lock name that all tabs share', async () => {
  const locks = createLocks()
  vi.stubGlobal('navigator', { locks })
  await withSendLock(key, async () => {})
  expect(locks.held).toEqual(['countersign:send:1:0xabcdef0000000000000000000000000000000001'])
})
