import { createPolicy, type Policy } from '@countersign/policy'
import { type Hex, hashUnsignedTransaction, type TxMetadata, toHex, type VaultInfo } from '@countersign/protocol'
import { beforeEach, describe, expect, test } from 'vitest'
import { alice, rule } from '../../test/vaults/vaults.ts'
import { createTestService } from './createTestService.ts'
import { createTestPasskeys } from './testPasskeys.ts'
import type { TestService } from './testService.ts'

const policy: Policy = createPolicy({ version: 1, log: null, approvers: [], rules: [rule] })
const txMetadata: TxMetadata = {
  chainId: 31337,
  nonce: 0,
  to: alice,
  value: '1000',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '3000000000',
  maxPriorityFeePerGas: '1000000000',
}
const toBody = (metadata: TxMetadata) => ({
  digest: `0x${toHex(hashUnsignedTransaction(metadata))}` satisfies Hex,
  txMetadata: metadata,
})

let service: TestService
beforeEach(() => {
  service = createTestService()
})

async function post(path: string, body?: unknown) {
  const response = await service.fetch(`https://service.test${path}`, {
    method: 'POST',
    credentials: 'include',
    ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const { code, detail, ...rest } = await response.json()
  return { status: response.status, code, detail, rest }
}

const create = async (given: unknown = policy) => (await post('/vaults', { policy: given })).rest as VaultInfo

describe('the test service returns the service’s errors', () => {
  test.each([
    ['no policy', {}, 'invalid_request'],
    ['a member too many', { policy, name: 'savings' }, 'invalid_request'],
    ['an invalid policy', { policy: { version: 1 } }, 'invalid_policy'],
    ['an invalid address', { policy, address: '0x12' }, 'invalid_request'],
    ['a list out of its order', { policy: { ...policy, rules: [rule, rule] } }, 'invalid_policy'],
  ])('POST /vaults: %s', async (_name, body, code) => {
    expect(await post('/vaults', body)).toMatchObject({ status: 400, code })
  })

  test('the hundred and first vault', async () => {
    for (let max = 0; max < 100; max += 1) await create({ ...policy, rules: [{ ...rule, maxValueWei: String(max) }] })
    expect(await post('/vaults', { policy })).toMatchObject({ status: 409, code: 'too_many_vaults' })
    // An existing vault is not a new one.
    expect((await post('/vaults', { policy: { ...policy, rules: [{ ...rule, maxValueWei: '7' }] } })).status).toBe(201)
    // Nor is a vault of another service with the same keys.
    const full = service
    service = createTestService()
    const { address } = await create()
    service = full
    expect(await post('/vaults', { policy, address })).toMatchObject({ status: 201, rest: { address } })
  })

  test.each<[string, object, number, string]>([
    ['approvals without a vault', { approvals: [] }, 400, 'invalid_request'],
    ['a rule without a vault', { rule: 0 }, 400, 'invalid_request'],
    ['a wallet that is not an address', { wallet: '0x12' }, 400, 'invalid_request'],
    ['invalid approvals', { wallet: alice, approvals: [{}] }, 400, 'invalid_request'],
    ['an unknown vault', { wallet: alice }, 404, 'vault_not_found'],
    ['an unknown vault, with a rule', { wallet: alice, rule: 0 }, 404, 'vault_not_found'],
  ])('POST /sign/digest: %s', async (_name, use, status, code) => {
    expect(await post('/sign/digest', { ...toBody(txMetadata), ...use })).toMatchObject({ status, code })
  })

  test('rejects what the rules forbid with the service’s message, and signs the rest with the vault’s key', async () => {
    const { address: wallet } = await create()
    const above = { ...txMetadata, value: String(10n ** 18n) }
    const refused = await post('/sign/digest', { ...toBody(above), wallet, rule: 0 })
    expect(refused).toMatchObject({ status: 403, code: 'policy_refused' })
    expect(refused.detail).toContain('above the limit')
    expect((await post('/sign/digest', { ...toBody(txMetadata), wallet, rule: 0 })).status).toBe(200)
    const message = await post('/sign/message', { message: '0x12', wallet, rule: 0 })
    expect(message).toMatchObject({ status: 403, code: 'policy_refused' })
    service.advanceProof(service.proofs[0]?.slug ?? '')
    expect(service.proofs).toMatchObject([
      { walletAddress: wallet, receipt: { version: 'countersign-attestation/2', kind: 'transaction' } },
    ])
  })

  test('a vault’s request needs a rule, and no other rule is checked', async () => {
    const rules = [rule, { ...rule, to: 'any', maxValueWei: String(10n ** 18n) }] as const
    const { address: wallet } = await create(createPolicy({ ...policy, rules }))
    const toOther = toBody({ ...txMetadata, to: `0x${'b0'.repeat(20)}` })
    const ask = (use: object) => post('/sign/digest', { ...toOther, wallet, ...use })
    expect(await ask({})).toMatchObject({ status: 400, code: 'invalid_request', detail: 'rule is missing' })
    for (const invalid of [-1, 0.5, 255, '1', null]) {
      expect(await ask({ rule: invalid })).toMatchObject({ status: 400, code: 'invalid_request' })
    }
    const unknown = await ask({ rule: 2 })
    expect(unknown).toMatchObject({ status: 403, code: 'policy_refused' })
    expect(unknown.detail).toBe('The vault has no rule with this number.')
    const results = [await ask({ rule: 0 }), await ask({ rule: 1 })]
    expect(results.map(({ status }) => status).toSorted()).toEqual([200, 403])
    const allowed = results.findIndex(({ status }) => status === 200)
    service.advanceProof(service.proofs[0]?.slug ?? '')
    expect(service.proofs).toMatchObject([{ receipt: { signer: { statement: { rule: allowed, session: 'cookie' } } } }])
  })

  test('accepts the user’s own wallet by its address, but without approvals or rule', async () => {
    const { address: wallet } = service.wallet
    expect((await post('/sign/digest', { ...toBody(txMetadata), wallet })).status).toBe(200)
    const approval = {
      approver: 0,
      authenticatorData: '00'.repeat(37),
      clientDataJSON: '7b7d',
      signature: '30',
      expiresMs: 1,
    }
    const refused = await post('/sign/digest', { ...toBody(txMetadata), wallet, approvals: [approval] })
    expect(refused).toMatchObject({ status: 400, code: 'invalid_request', detail: 'approvals are for a vault' })
    const ruled = await post('/sign/digest', { ...toBody(txMetadata), wallet, rule: 0 })
    expect(ruled).toMatchObject({ status: 400, code: 'invalid_request', detail: 'rule is for a vault' })
  })

  test('rejects creating, listing and attesting without a session', async () => {
    const { address } = await create()
    service.signOut()
    for (const path of ['/vaults', `/vaults/${address}/attest`, '/wallet/attest']) {
      expect(await post(path, path === '/vaults' ? { policy } : undefined)).toMatchObject({ status: 401 })
    }
  })

  test('rejects an attestation with a body, of a malformed address, of an unknown vault, and without a wallet', async () => {
    const { address } = await create()
    expect(await post(`/vaults/${address}/attest`, { now: true })).toMatchObject({ code: 'invalid_request' })
    expect(await post('/vaults/0x12/attest')).toMatchObject({ code: 'invalid_request' })
    expect(await post(`/vaults/0x${'11'.repeat(20)}/attest`)).toMatchObject({ code: 'vault_not_found' })
    service = createTestService({ provisioned: false })
    expect(await post('/wallet/attest')).toMatchObject({ code: 'wallet_not_provisioned' })
  })
})

test('test passkeys restore the globals', () => {
  const before = ['credentials' in navigator, 'PublicKeyCredential' in globalThis, 'location' in globalThis]
  createTestPasskeys().install()()
  expect(['credentials' in navigator, 'PublicKeyCredential' in globalThis, 'location' in globalThis]).toEqual(before)
})
