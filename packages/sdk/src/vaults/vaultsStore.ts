import type { Policy } from '@countersign/policy'
import { type ServiceError, sessionUser } from '@countersign/protocol'
import { createCall } from '../client/api.ts'
import { createStore, type Store } from '../client/createStore.ts'
import { createError, toServiceError } from '../client/errors.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import type { Vault } from './vault.ts'
import { type CreateVaultOptions, createVault, listVaults } from './vaultCalls.ts'

export type VaultsState = {
  /** Null until they were read, and while nobody is signed in. */
  vaults: readonly Vault[] | null
  loading: boolean
  /** Why they could not be read, the last time; null if they were. */
  error: ServiceError | null
}

export type VaultsStore = Store<VaultsState> & {
  /** Whose vaults are shown; null for nobody's. Those of another user are forgotten at once. */
  show(userId: string | null): void
  /** Reads them again. Always resolves; `error` says what went wrong. */
  refresh(): Promise<void>
  /**
   * Makes a vault and adds it to the list. Rejects if it was not made, and with `wallet_changed` unless it is certain to be that of the
   * user whose vaults are shown: only its owner can ever use it.
   */
  create(policy: Policy, options?: CreateVaultOptions): Promise<Vault>
}

const NOTHING: VaultsState = { vaults: null, loading: false, error: null }

/** The vaults of a page's user: `useVaults` without React. */
export function createVaultsStore(client: ServiceClient): VaultsStore {
  const store = createStore(NOTHING)
  let shown: string | null = null
  /** The reading whose answer counts. */
  let current: object | undefined

  async function refresh(): Promise<void> {
    if (shown === null) return
    const reading = {}
    current = reading
    store.set({ loading: true })
    const change = await readVaults(client, shown).then(
      (vaults) => ({ vaults, error: null }),
      (error: unknown) => ({ error: toServiceError(error) }),
    )
    if (current === reading) store.set({ ...change, loading: false })
  }

  return {
    ...store,
    show(userId) {
      if (userId === shown) return
      shown = userId
      current = undefined
      store.set(NOTHING)
      void refresh()
    },
    refresh,
    async create(policy, options) {
      const owner = shown
      await verifyUser(client, owner)
      const vault = await createVault(client, policy, options)
      // Its key follows from the user whose session made it, and nothing in the answer says who that was.
      await verifyUser(client, owner)
      // A reading that is under way may not have it.
      if (owner === shown) await refresh()
      return vault
    },
  }
}

async function readVaults(client: ServiceClient, owner: string): Promise<Vault[]> {
  const vaults = await listVaults(client)
  await verifyUser(client, owner)
  return vaults
}

/** Another tab may have signed in another user: all tabs share the cookie. Nobody signed in is the service's own error, with its 401. */
async function verifyUser({ config }: ServiceClient, userId: string | null): Promise<void> {
  const { id } = await createCall(config.apiBaseUrl)('GET /auth/me', sessionUser)
  if (id !== userId) throw createError('wallet_changed', 'another user is signed in now')
}
