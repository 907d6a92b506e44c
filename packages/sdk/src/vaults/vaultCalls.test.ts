import { parsePolicy, VaultPolicyError } from '@countersign/policy'
import { type Hex, hashOwner, toCanonicalJson, toHex } from '@countersign/protocol'
import { sha256 } from 'viem'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type StartedVault, startVault, toFailure, toPolicy } from '../../test/vaults/vaults.ts'
import { isVaultError } from './errors.ts'
import { prepare } from './prepare.ts'
import { toPolicyFile, toRawCid } from './vault.ts'
import { attestVault, attestWallet, createVault, listVaults } from './vaultCalls.ts'

let started: StartedVault

beforeEach(async () => {
  started = await startVault()
})
afterEach(() => started.stop())

/** Changes the service's answers from now on. */
function tamper(change: (body: Record<string, unknown>) => unknown): void {
  const answer = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    const response = await answer(input, init)
    return Response.json(change(await response.json()), { status: response.status })
  }
}

test('the same rules in another order are the same vault', async () => {
  const { client, vault, passkeys } = started
  const policy = toPolicy([...passkeys].reverse())
  expect(await createVault(client, { ...policy, rules: [...policy.rules].reverse() })).toEqual(vault)
  expect(await listVaults(client)).toEqual([vault])
})

test('converts checksummed addresses in rules to lower case, and rejects a wrong checksum before sending', async () => {
  const { client, service, passkeys } = started
  const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const rule = {
    kind: 'transaction',
    chainIds: 'any',
    maxValueWei: '1',
    maxFeeWei: '1',
    approvals: 0,
    approvers: 'any',
  } as const
  const withRecipient = (to: Hex) => ({ ...toPolicy(passkeys), rules: [{ ...rule, to: [to] }] })
  const vault = await createVault(client, withRecipient(friend))
  expect(vault.policy.rules).toEqual([{ ...rule, to: [friend.toLowerCase()] }])
  const before = service.requests.length
  const refused = createVault(client, withRecipient(friend.replace('C8', 'c8') as Hex))
  await expect(refused).rejects.toMatchObject({ code: 'vault_policy_malformed' })
  expect(service.requests).toHaveLength(before)
})

test('the owner’s file has the hashed bytes of the policy', () => {
  const { name, bytes } = toPolicyFile(started.vault)
  expect(name).toBe(`vault-${started.vault.address}.json`)
  expect(parsePolicy(bytes)).toEqual(started.vault.policy)
})

test('rejects an invalid policy before sending', async () => {
  const { client, service, passkeys } = started
  const before = service.requests.length
  const policy = { ...toPolicy(passkeys), label: 'savings' }
  await expect(createVault(client, policy)).rejects.toBeInstanceOf(VaultPolicyError)
  await expect(createVault(client, undefined as never)).rejects.toBeInstanceOf(VaultPolicyError)
  expect(service.requests).toHaveLength(before)
})

test('rejects a vault with other rules', async () => {
  const { client, passkeys } = started
  const policy = toPolicy(passkeys)
  const weaker = await createVault(client, { ...policy, rules: policy.rules.slice(0, 1) })
  tamper(() => weaker)
  const error = await toFailure(createVault(client, policy))
  expect(error.code).toBe('vault_mismatch')
  expect(error.details).toContain(weaker.policyHash)
})

test('restores a vault by its rules and address, and rejects another address', async () => {
  const { client, vault, passkeys } = started
  const policy = toPolicy(passkeys)
  const address = `0x${vault.address.slice(2).toUpperCase()}` as const
  expect(await createVault(client, policy, { address })).toEqual(vault)
  const elsewhere = { address: `0x${'12'.repeat(20)}` } as const
  expect(await toFailure(createVault(client, policy, elsewhere))).toMatchObject({
    code: 'vault_not_found',
    status: 404,
  })
  tamper((body) => ({ ...body, ...elsewhere }))
  const error = await toFailure(createVault(client, policy, { address }))
  expect(error.code).toBe('vault_mismatch')
  expect(error.details).toContain(elsewhere.address)
})

test.each([
  ['without an owner', {}],
  ['with an owner without a salt', { owner: { identity: { issuer: 'i', subject: 's', email: null } } }],
  ['with an owner without an identity', { owner: { salt: 'ab'.repeat(32) } }],
])('rejects an attestation %s', async (_, changes) => {
  const { client, vault } = started
  tamper(({ slug }) => ({ slug, ...changes }))
  expect((await toFailure(attestVault(client, vault))).code).toBe('response_invalid')
  expect((await toFailure(attestWallet(client))).code).toBe('response_invalid')
})

test.each([
  ['policyHash', 'ab'.repeat(32)],
  ['policyCid', 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'],
  ['address', '0x12'],
  ['createdAt', 'yesterday'],
  ['policy', { version: 2 }],
  ['policy', null],
])('rejects an answer with a wrong %s', async (member, value) => {
  const { client, passkeys } = started
  tamper((body) =>
    Array.isArray(body.vaults) ? { vaults: [{ ...body.vaults[0], [member]: value }] } : { ...body, [member]: value },
  )
  expect((await toFailure(createVault(client, toPolicy(passkeys)))).code).toBe('response_invalid')
  expect((await toFailure(listVaults(client))).code).toBe('response_invalid')
})

test('listVaults does not check keys of witnesses and time sources, which is slow', async () => {
  const { client, vault } = started
  const policy = { ...vault.policy, log: { witnesses: ['ff'.repeat(32)], quorum: 1 } }
  const bytes = toCanonicalJson(policy)
  const unjudged = { ...vault, policy, policyHash: sha256(bytes).slice(2), policyCid: toRawCid(bytes) }
  tamper((body) => (Array.isArray(body.vaults) ? { vaults: [unjudged] } : body))
  expect(await listVaults(client)).toEqual([unjudged])
  expect(() => toPolicyFile(unjudged)).toThrow(VaultPolicyError)
  await expect(prepare(client, unjudged, { kind: 'message', message: 'hello' })).rejects.toThrow(VaultPolicyError)
  await expect(createVault(client, policy)).rejects.toThrow(VaultPolicyError)
})

test.each([
  ['invalid_policy', 400, false],
  ['too_many_vaults', 409, false],
  ['policy_not_pinned', 503, true],
] as const)('the service’s refusal %s is typed, and says whether to ask again', async (code, status, retryable) => {
  const { client, service, passkeys } = started
  service.failNext('POST /vaults', { code })
  const error = await toFailure(createVault(client, toPolicy(passkeys)))
  expect(error).toMatchObject({ code, status, retryable })
  expect(isVaultError(error)).toBe(true)
})

test('listVaults rejects without a session, but not with a vault error', async () => {
  started.service.signOut()
  const error = await toFailure(listVaults(started.client))
  expect(error).toMatchObject({ code: 'not_authenticated', status: 401 })
  expect(isVaultError(error)).toBe(false)
  expect(isVaultError(new Error('policy_refused'))).toBe(false)
})

test('attests an address under one slug, with what opens its owner, but not an unknown vault’s', async () => {
  const { client, service, vault } = started
  const { attestationSlug, owner } = await attestVault(client, vault)
  expect(await attestVault(client, vault)).toEqual({ attestationSlug, owner })
  service.advanceProof(attestationSlug)
  const proof = await client.api.getProof(attestationSlug)
  expect(proof).toMatchObject({ kind: 'address', walletAddress: vault.address, chainId: 0 })
  expect(proof.receipt).toMatchObject({ subject: { address: vault.address, owner: toHex(hashOwner(owner)) } })
  const own = await attestWallet(client)
  expect(own.attestationSlug).not.toBe(attestationSlug)
  expect(own.owner.identity).toEqual(owner.identity)
  expect(own.owner.salt).not.toBe(owner.salt)
  const error = await toFailure(attestVault(client, { address: `0x${'12'.repeat(20)}` }))
  expect(error).toMatchObject({ code: 'vault_not_found', status: 404 })
})
