import { createPolicy, MAX_POLICY_BYTES, type Policy, toPolicyBytes } from '@countersign/policy'
import { quicknet, toCanonicalJson, type VaultInfo } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createTestApp, scheduleAtOnce } from '../../test/http/testApp.ts'
import { MAX_VAULTS } from '../accounts/vaults.ts'

/* `POST /vaults` with the address of an earlier vault that the database has lost. */

const payment = {
  kind: 'transaction',
  to: 'any',
  maxValueWei: '1',
  maxFeeWei: '1',
  approvals: 0,
  approvers: 'any',
} as const
const policy = createPolicy({ version: 1, log: null, approvers: [], rules: [{ ...payment, chainIds: [1] }] })
const manySources = createPolicy({
  ...policy,
  schedule: { startsAtMs: 0, everyS: 60, count: 1 },
  time: Array.from({ length: 9 }, (_, at) => ({ kind: 'drand', ...quicknet, chainHash: `0${at}`.repeat(32) })),
})
const elsewhere = `0x${'11'.repeat(20)}`

async function setUp(changes: Parameters<typeof createTestApp>[0] = {}) {
  const app = createTestApp({ ...changes, deps: { schedule: scheduleAtOnce } })
  const user = app.browser()
  await user.signIn()
  await user.post('/vaults', { policy: createPolicy({ ...policy, rules: [{ ...payment, chainIds: [8453] }] }) })
  const [asked] = app.enclave.derived
  const [row] = app.store.rows.vaults.values()
  if (asked === undefined || row === undefined) throw new Error('no vault')
  /** The response when the vault was created. */
  const toAddress = async (value: unknown) => {
    const text = Buffer.from(toCanonicalJson(value)).toString()
    const { address } = await app.enclave.deriveVault({ ...asked, policy: text })
    app.enclave.derived.pop()
    return address
  }
  const restore = async (body: unknown, by = user) => {
    const response = await by.post('/vaults', body)
    return { status: response.status, ...((await response.json()) as Partial<VaultInfo> & { code?: string }) }
  }
  return { ...app, user, row, toAddress, restore }
}

test.each<[string, Policy]>([
  ['rules for chains that the service does not sign for any more', policy],
  ['more sources of time than a new one may have', manySources],
])('a vault with %s comes back by its address', async (_, value) => {
  const { user, toAddress, restore, enclave } = await setUp({ config: { allowedChainIds: [8453] } })
  expect(await restore({ policy: value })).toMatchObject({ status: 400, code: 'invalid_policy' })
  const address = await toAddress(value)
  const restored = await restore({ policy: value, address: `0x${address.slice(2).toUpperCase()}` })
  expect(restored).toMatchObject({ status: 201, address, policy: value })
  const text = Buffer.from(toPolicyBytes(value)).toString()
  expect(enclave.derived.at(-1)).toMatchObject({ policy: text, isKnown: true })
  const { vaults } = (await (await user.get('/vaults')).json()) as { vaults: VaultInfo[] }
  expect(vaults.map((vault) => vault.address)).toContain(address)
})

test('restores an earlier vault even if the limit is reached', async () => {
  const { toAddress, restore, store, row } = await setUp()
  for (let index = 1; index < MAX_VAULTS; index += 1) {
    store.rows.vaults.set(`${index}`, { ...row, id: `${index}`, policy: { hash: `${index}`, text: '{}' } })
  }
  expect(await restore({ policy })).toMatchObject({ status: 409, code: 'too_many_vaults' })
  const address = await toAddress(policy)
  expect(await restore({ policy, address })).toMatchObject({ status: 201, address })
})

test('returns vault_not_found without an address for another address, and stores nothing', async () => {
  const { browser, user, toAddress, store } = await setUp()
  const address = await toAddress(policy)
  const stranger = browser()
  await stranger.signIn('/auth/other')
  for (const [by, given] of [
    [user, elsewhere],
    [stranger, address],
  ] as const) {
    const response = await by.post('/vaults', { policy, address: given })
    const text = await response.text()
    expect([response.status, JSON.parse(text).code]).toEqual([404, 'vault_not_found'])
    expect(text).not.toContain('0x')
  }
  expect(store.rows.vaults.size).toBe(1)
})

test('does not store an invalid policy, even at the address of its hash', async () => {
  const { toAddress, restore, store } = await setUp()
  const wrong = { ...policy, label: 'x' }
  const address = await toAddress(wrong)
  expect(await restore({ policy: wrong, address })).toMatchObject({ status: 400, code: 'invalid_policy' })
  expect(store.rows.vaults.size).toBe(1)
})

test.each([
  ['an invalid address', { policy, address: '0x12' }, 'invalid_request'],
  ['an address of null', { policy, address: null }, 'invalid_request'],
  [
    'more than a policy may have',
    { policy: { ...policy, label: 'x'.repeat(MAX_POLICY_BYTES) }, address: elsewhere },
    'invalid_policy',
  ],
])('%s is refused, before the enclave is asked', async (_, body, code) => {
  const { restore, enclave } = await setUp()
  enclave.failure = new Error('asked')
  expect(await restore(body)).toMatchObject({ status: 400, code })
})
