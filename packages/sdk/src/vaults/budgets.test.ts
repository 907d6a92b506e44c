import type { PasskeyApproval } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { startAgent, toPayment } from '../../test/vaults/agents.ts'
import { alice, toFailure } from '../../test/vaults/vaults.ts'
import { approve, approveRevocation } from './approve.ts'
import { prepare } from './prepare.ts'
import { signPrepared } from './signPrepared.ts'
import { toVaultClient } from './toVaultClient.ts'
import { getBudget, revokeKey } from './vaultCalls.ts'

const session = { approvals: 0, approvers: [], session: true }

describe('a vault with budgets and a session', () => {
  test('pays without approvals by a rule that needs only the session, and the amounts are counted', async () => {
    const { client, vault } = await startAgent({ toRules: (spend) => [spend, { ...spend, ...session }] })
    const { opening } = await toVaultClient(client, vault).signTypedData(toPayment(vault.address, 70n) as never)
    expect(opening.content).toMatchObject({ budget: { sequence: 1 } })
    const again = toVaultClient(client, vault).signTypedData(toPayment(vault.address, 40n, { nonce: 2 }) as never)
    expect(await toFailure(again)).toMatchObject({ code: 'budget_exceeded', left: '30' })
  })

  test('passkeys approve by their own rule, even if an agent’s rule comes first', async () => {
    const byPasskey = { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 1, approvers: [1] } as const
    const { client, vault, service, credentials } = await startAgent({ toRules: (spend) => [spend, byPasskey] })
    const prepared = await prepare(client, vault, { kind: 'typed-data', ...toPayment(vault.address, 500n) } as never)
    expect(vault.policy.rules[prepared.rule]?.kind).toBe('typed-data')
    await signPrepared(client, prepared, [await approve(prepared, { credentials })])
    expect(service.requests.at(-1)).toBe('POST /sign/typed-data')
  })

  test('rejects a payment that only an agent may approve', async () => {
    const { client, vault } = await startAgent()
    const request = { kind: 'typed-data', ...toPayment(vault.address, 1n) } as never
    expect((await toFailure(prepare(client, vault, request))).code).toBe('policy_refused')
  })

  test('reads what is left', async () => {
    const { client, vault, agent } = await startAgent()
    expect(await getBudget(client, vault)).toMatchObject({ sequence: 0, revoked: [], proof: null })
    await agent.signTypedData(toPayment(vault.address, 1n))
    expect((await getBudget(client, vault)).budgets.map(({ spent }) => spent).toSorted()).toEqual(['0', '1'])
  })
})

describe('revokeKey', () => {
  test('revokes with the session, and returns the same proof again', async () => {
    const { client, vault, publicKey } = await startAgent()
    const { attestationSlug } = await revokeKey(client, vault, publicKey)
    expect(await client.api.getProof(attestationSlug)).toMatchObject({ kind: 'revocation' })
    expect(await revokeKey(client, vault, publicKey)).toEqual({ attestationSlug })
    expect((await getBudget(client, vault)).revoked).toEqual([publicKey])
  })

  test('revokes with one passkey, without a session', async () => {
    const { client, vault, publicKey, service, credentials } = await startAgent()
    service.signOut()
    await revokeKey(client, vault, publicKey, [await approveRevocation(vault, publicKey, { credentials })])
    service.signIn()
    expect((await getBudget(client, vault)).revoked).toEqual([publicKey])
  })

  test.each<[string, (approval: PasskeyApproval) => PasskeyApproval[], string]>([
    ['without an approval', () => [], 'approvals_missing'],
    ['with a changed approval', (one) => [{ ...one, expiresMs: one.expiresMs + 1 }], 'approval_invalid'],
  ])('rejects a revocation %s', async (_name, change, code) => {
    const { client, vault, publicKey, credentials } = await startAgent()
    const approvals = change(await approveRevocation(vault, publicKey, { credentials }))
    expect((await toFailure(revokeKey(client, vault, publicKey, approvals))).code).toBe(code)
  })

  test('rejects the approval of another vault’s revocation, and keys that are not the vault’s', async () => {
    const { client, vault, publicKey, credentials } = await startAgent()
    const approvals = [
      await approveRevocation({ ...vault, address: alice }, publicKey, { credentials }).catch(() => undefined),
    ]
    expect(approvals[0]).toBeDefined()
    expect((await toFailure(revokeKey(client, vault, publicKey, approvals as PasskeyApproval[]))).code).toBe(
      'approval_invalid',
    )
    expect((await toFailure(revokeKey(client, vault, '11'.repeat(32)))).code).toBe('invalid_request')
    expect((await toFailure(revokeKey(client, vault, '0x11'))).code).toBe('invalid_request')
  })
})
