import type { Policy } from '@countersign/policy'
import { type ReactNode, StrictMode } from 'react'
import { beforeEach, expect, test } from 'vitest'
import { cdp } from 'vitest/browser'
import { renderHook } from 'vitest-browser-react'
import { installTestService } from '../../test/testing/installTestService.ts'
import { bob, rule, toFailure, toPolicy } from '../../test/vaults/vaults.ts'
import { ServiceProvider, useService } from '../index.ts'
import type { TestService } from '../testing/testService.ts'
import { approve } from './approve.ts'
import { createPasskey } from './createPasskey.ts'
import { prepare } from './prepare.ts'
import { parsePrepared } from './prepared.ts'
import { sendPrepared } from './signPrepared.ts'
import { useVaults } from './useVaults.ts'

type WebAuthnSession = {
  send(method: 'WebAuthn.enable' | 'WebAuthn.disable'): Promise<unknown>
  send(method: 'WebAuthn.addVirtualAuthenticator', parameters: object): Promise<unknown>
}

const options = {
  protocol: 'ctap2',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
}
const policy: Policy = { version: 1, log: null, approvers: [], rules: [rule] }

let service: TestService

beforeEach(() => {
  service = installTestService()
})

const Provided = ({ children }: { children: ReactNode }) => (
  <StrictMode>
    <ServiceProvider config={service.config}>{children}</ServiceProvider>
  </StrictMode>
)

async function renderReady() {
  const hook = await renderHook(() => ({ ...useVaults(), service: useService() }), { wrapper: Provided })
  await expect.poll(() => hook.result.current.service.ready).toBe(true)
  return hook
}

test('reads the list for the user, adds a created vault, and attests its address', async () => {
  const { result } = await renderReady()
  await expect.poll(() => result.current.vaults).toEqual([])
  const vault = await result.current.create(policy)
  await expect.poll(() => result.current.vaults).toEqual([vault])
  const { attestationSlug } = await result.current.attest(vault)
  expect(service.proofs.map(({ slug }) => slug)).toContain(attestationSlug)
})

test('shows and requests no vaults after a sign-out', async () => {
  const { result } = await renderReady()
  await result.current.create(policy)
  await expect.poll(() => result.current.vaults).toHaveLength(1)
  await result.current.service.logout()
  await expect.poll(() => result.current.vaults).toBeNull()
  const asked = service.requests.length
  await result.current.refresh()
  expect(service.requests).toHaveLength(asked)
})

test('keeps the last list and sets error if the list cannot be read', async () => {
  const { result } = await renderReady()
  const vault = await result.current.create(policy)
  service.failNext('GET /vaults', { code: 'database_unavailable' })
  await result.current.refresh()
  await expect.poll(() => result.current.error?.code).toBe('database_unavailable')
  expect(result.current.vaults).toEqual([vault])
  await result.current.refresh()
  await expect.poll(() => result.current).toMatchObject({ error: null, loading: false, vaults: [vault] })
})

test('a rejected vault leaves the list unchanged', async () => {
  const { result } = await renderReady()
  await expect.poll(() => result.current.vaults).toEqual([])
  service.failNext('POST /vaults', { code: 'too_many_vaults' })
  expect((await toFailure(result.current.create(policy))).code).toBe('too_many_vaults')
  expect(result.current).toMatchObject({ vaults: [], error: null })
})

test('creates a passkey and a vault, and approves and sends a payment, in a real browser', async () => {
  const session = cdp() as unknown as WebAuthnSession
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', { options })
  const { result } = await renderReady()
  const { client } = result.current.service
  const passkeys = [await createPasskey({ name: 'one' }), await createPasskey({ name: 'two' })] as const
  const vault = await result.current.create(toPolicy(passkeys))
  await client.signAndSend({ to: vault.address, value: '2' })
  const prepared = await prepare(client, vault, { kind: 'transaction', to: bob, value: '1' })
  const { credentialId, transports } = passkeys[1]
  const approval = await approve(parsePrepared(JSON.stringify(prepared)), {
    credentials: [{ credentialId, transports }],
  })
  expect(vault.policy.approvers[approval.approver]?.publicKey).toBe(passkeys[1].approver.publicKey)
  const { txHash } = await sendPrepared(client, prepared, [approval])
  expect(service.transactions.at(-1)).toMatchObject({ hash: txHash, from: vault.address, to: bob })
  const stranger = await createPasskey({ name: 'stranger' })
  const error = await toFailure(approve(prepared, { credentials: [{ credentialId: stranger.credentialId }] }))
  expect(error.code).toBe('passkey_not_approver')
  await session.send('WebAuthn.disable')
})
