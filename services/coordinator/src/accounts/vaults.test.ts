import { expect, test } from 'vitest'
import { createFakeEnclave } from '../../test/ports.ts'
import { CoordinatorError } from '../errors.ts'
import type { Vault } from '../store/vaults.ts'
import { createListVaults } from './vaults.ts'

/** A user with this many vaults, and an enclave that counts concurrent calls. */
async function setUp(count: number) {
  const fake = createFakeEnclave({ clock: { now: () => 0 } })
  const vaults = await Promise.all(
    Array.from({ length: count }, async (_, index): Promise<Vault> => {
      const text = `{"name":"${index}"}`
      const { address, keyId: kmsKeyId, policy } = await fake.deriveVault({ sid: '', grant: '', policy: text })
      const policyOf = { hash: policy, text }
      return { id: text, userId: 'user', address, kmsKeyId, createdAt: index, policy: policyOf, isPinned: true }
    }),
  )
  const calls = { open: 0, most: 0, all: 0 }
  const listVaults = createListVaults({
    store: { listVaults: async () => vaults },
    enclave: {
      async deriveVault(request) {
        calls.open += 1
        calls.all += 1
        calls.most = Math.max(calls.most, calls.open)
        await new Promise((resolve) => setImmediate(resolve))
        calls.open -= 1
        return fake.deriveVault(request)
      },
    },
  })
  const list = (sid: string) => listVaults({ sid, session: { userId: 'user', grant: '' } })
  return { fake, vaults, calls, list }
}

test('concurrent lists share their calls to the enclave, and all lists make at most four at a time', async () => {
  const { vaults, calls, list } = await setUp(20)
  const sessions = Array.from({ length: 200 }, (_, index) => `session ${index % 10}`)
  const lists = await Promise.all(sessions.map(list))
  expect(lists.every((listed) => listed === vaults)).toBe(true)
  expect(calls).toEqual({ open: 0, most: 4, all: 10 * 20 })
})

test('fails after one call if the enclave is down, and the next list tries again', async () => {
  const { fake, vaults, calls, list } = await setUp(20)
  fake.failure = new CoordinatorError('enclave_unavailable', 'down')
  const failed = await Promise.allSettled([list('session'), list('session')])
  expect(failed).toEqual([1, 2].map(() => ({ status: 'rejected', reason: fake.failure })))
  expect(calls.all).toBe(1)
  fake.failure = undefined
  expect(await list('session')).toBe(vaults)
})
