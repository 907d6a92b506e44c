import type { Policy } from '@countersign/policy'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { installTestService } from '../../test/testing/installTestService.ts'
import { rule, toFailure } from '../../test/vaults/vaults.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService } from '../testing/testService.ts'
import { createVaultsStore, type VaultsStore } from './vaultsStore.ts'

const policy: Policy = { version: 1, log: null, approvers: [], rules: [rule] }

let service: TestService
let store: VaultsStore
/** After which request another tab signs in somebody else. */
let switchAfter: string | undefined

beforeEach(async () => {
  service = installTestService()
  const installed = globalThis.fetch
  // Before the service is taken out, which leaves what is put before it. The next file in this process has the same `fetch`.
  onTestFinished(() => {
    globalThis.fetch = installed
  })
  let isOther = false
  switchAfter = undefined
  globalThis.fetch = async (input, init) => {
    const response = await installed(input, init)
    const { pathname } = new URL(String(input))
    const isMe = pathname === '/auth/me'
    const answer = isOther && isMe ? Response.json({ ...(await response.json()), id: 'another user' }) : response
    if (`${init?.method ?? 'GET'} ${pathname}` === switchAfter) isOther = true
    return answer
  }
  store = createVaultsStore(new ServiceClient(service.config))
  store.show(service.user.id)
  await expect.poll(() => store.getSnapshot().vaults).toEqual([])
})

const makings = () => service.requests.filter((request) => request === 'POST /vaults').length

test('no vault is made for somebody else who is signed in now', async () => {
  switchAfter = 'GET /vaults'
  await store.refresh()
  expect((await toFailure(store.create(policy))).code).toBe('wallet_changed')
  expect(makings()).toBe(0)
})

test('a vault that somebody else’s session may have made is not given out', async () => {
  switchAfter = 'POST /vaults'
  expect((await toFailure(store.create(policy))).code).toBe('wallet_changed')
  expect(makings()).toBe(1)
  expect(store.getSnapshot().vaults).toEqual([])
})

test('somebody else’s vaults are not put into the list', async () => {
  const vault = await store.create(policy)
  switchAfter = 'GET /vaults'
  await store.refresh()
  expect(store.getSnapshot()).toMatchObject({ vaults: [vault], loading: false, error: { code: 'wallet_changed' } })
})

test('a session that has ended is the service’s 401', async () => {
  service.signOut()
  expect(await toFailure(store.create(policy))).toMatchObject({ code: 'not_authenticated', status: 401 })
})
