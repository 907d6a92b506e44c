import { hash } from 'node:crypto'
import type { VaultInfo } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { Vault } from '../store/vaults.ts'
import { assertDerived, deriveVaultKey } from './deriveVaultKey.ts'

export type ListVaultsDeps = {
  store: Pick<Store, 'listVaults'>
  enclave: Pick<KeyEnclave, 'deriveVault'>
}

type ListVaultsParameters = { sid: string; session: Pick<Session, 'userId' | 'grant'> }
type VaultCheck = ListVaultsParameters & { vault: Vault; name: string }

/** Beyond this the oldest are derived again. A hundred bytes each, about. */
const MAX_VERIFIED = 10_000
/** Calls of the enclave for lists at one time: those of signing and sign-in go by the same connections. */
const SLOTS = 4

/**
 * `GET /vaults`, oldest first. People pay to what is listed, so each vault is what the enclave derives, once in a session: the session secret is
 * what no thief of the database has. Throws `key_binding_mismatch`.
 */
export function createListVaults({ store, enclave }: ListVaultsDeps) {
  /** Hashes of session and vault. */
  const verified = new Set<string>()
  const checks = createGatherer<VaultCheck, void>({
    async run(asked, { answer }) {
      for (const one of asked) {
        await verify(one)
        answer(one, { status: 'fulfilled', value: undefined })
      }
    },
    // Lists that are asked for at the same time wait for one call.
    keyOf: ({ name }) => name,
    limit: 1,
    slots: SLOTS,
  })

  async function verify({ vault, name, sid, session: { grant } }: VaultCheck): Promise<void> {
    assertDerived(vault, await deriveVaultKey(enclave, { sid, grant, policy: vault.policy, isKnown: true }))
    verified.add(name)
    const [oldest = ''] = verified
    if (verified.size > MAX_VERIFIED) verified.delete(oldest)
  }

  return async (parameters: ListVaultsParameters): Promise<Vault[]> => {
    const vaults = await store.listVaults(parameters.session.userId)
    // One after the other: where the enclave does not answer, one call says so.
    for (const vault of vaults) {
      const name = toName(parameters.sid, vault)
      if (!verified.has(name)) await checks.add({ ...parameters, vault, name })
    }
    return vaults
  }
}

function toName(sid: string, { address, kmsKeyId, policy }: Vault): string {
  return hash('sha256', JSON.stringify([sid, address, kmsKeyId, policy.hash, policy.text]), 'base64')
}

/** The public part of a vault: never its key id or its user. */
export function toVaultInfo({ address, createdAt, policy: { hash, text } }: Vault): VaultInfo {
  return {
    address,
    policyHash: hash,
    policyCid: toCid(new TextEncoder().encode(text)),
    policy: JSON.parse(text),
    createdAt: new Date(createdAt).toISOString(),
  }
}
