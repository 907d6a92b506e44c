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
/** The request after which another tab signs in another user. */
let switchAfter: string | undefined

beforeEach(async () => {
  service = installTestService()
  const installed = globalThis.fetch
  // Before the service is uninstalled, which leaves wrappers in place. The next file in this process shares `fetch`.
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

test('creates no vault for another user who has signed in', async () => {
  switchAfter = 'GET /vaults'
  await store.refresh()
  expect((await toFailure(store.create(policy))).code).toBe('wallet_changed')
  expect(makings()).toBe(0)
})

test('does not return a vault that another user’s session may have created', async () => {
  switchAfter = 'POST /vaults'
  expect((await toFailure(store.create(policy))).code).toBe('wallet_changed')
  expect(makings()).toBe(1)
  expect(store.getSnapshot().vaults).toEqual([])
})

test('does not list another user’s vaults', async () => {
  const vault = await store.create(policy)
  switchAfter = 'GET /vaults'
  await store.refresh()
  expect(store.getSnapshot()).toMatchObject({ vaults: [vault], loading: false, error: { code: 'wallet_changed' } })
})

test('rejects with the service’s 401 if the session has ended', async () => {
  service.signOut()
  expect(await toFailure(store.create(policy))).toMatchObject({ code: 'not_authenticated', status: 401 })
})
