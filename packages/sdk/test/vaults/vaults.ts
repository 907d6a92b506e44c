import type { Policy, TransactionRule } from '@countersign/policy'
import { type Hex, ServiceError } from '@countersign/protocol'
import { parseEther } from 'viem'
import { expect } from 'vitest'
import { ServiceClient } from '../../src/client/ServiceClient.ts'
import { createTestService } from '../../src/testing/createTestService.ts'
import { createTestPasskeys } from '../../src/testing/testPasskeys.ts'
import { createPasskey, type Passkey } from '../../src/vaults/createPasskey.ts'
import type { Vault } from '../../src/vaults/vault.ts'
import { createVault } from '../../src/vaults/vaultCalls.ts'

export const alice: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
export const bob: Hex = '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc'

/** Up to 0.1 ether to Alice without approval, up to 5 ether to anyone with one passkey. */
export const rule: TransactionRule = {
  kind: 'transaction',
  chainIds: [31337],
  to: [alice],
  maxValueWei: String(parseEther('0.1')),
  maxFeeWei: String(parseEther('0.01')),
  approvals: 0,
  approvers: 'any',
}

export function toPolicy(passkeys: readonly Passkey[]): Policy {
  return {
    version: 1,
    log: null,
    approvers: passkeys.map(({ approver }) => approver),
    rules: [
      rule,
      { ...rule, to: 'any', maxValueWei: String(parseEther('5')), approvals: 1 },
      { kind: 'message', approvals: 2, approvers: 'any' },
      { kind: 'typed-data', domains: 'any', primaryTypes: ['Order'], approvals: 1, approvers: 'any' },
    ],
  }
}

/**
 * A service, an authenticator with two passkeys, and a vault of both with 10 ether. `stop` uninstalls them, with any wrapper of the
 * service that a test added.
 */
export async function startVault() {
  const { fetch } = globalThis
  const service = createTestService()
  const authenticator = createTestPasskeys({ origin: 'https://vault.example' })
  const [uninstallService, uninstallPasskeys] = [service.install(), authenticator.install()]
  const client = new ServiceClient(service.config)
  const passkeys = [await createPasskey({ name: 'one' }), await createPasskey({ name: 'two' })] as const
  const vault: Vault = await createVault(client, toPolicy(passkeys))
  await client.signAndSend({ to: vault.address, value: '10' })
  return {
    service,
    authenticator,
    client,
    passkeys,
    vault,
    stop() {
      uninstallPasskeys()
      uninstallService()
      globalThis.fetch = fetch
    },
  }
}

export type StartedVault = Awaited<ReturnType<typeof startVault>>

/** Code, status and details of the rejection. */
export async function toFailure(promise: Promise<unknown>): Promise<ServiceError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(ServiceError)
  return error as ServiceError
}
