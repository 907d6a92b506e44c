import type { Policy } from '@countersign/policy'
import { type ServiceError, sessionUser } from '@countersign/protocol'
import { createCall } from '../client/api.ts'
import { createStore, type Store } from '../client/createStore.ts'
import { createError, toServiceError } from '../client/errors.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import type { Vault } from './vault.ts'
import { type CreateVaultOptions, createVault, listVaults } from './vaultCalls.ts'

export type VaultsState = {
  /** Null until the list is read, and without a session. */
  vaults: readonly Vault[] | null
  loading: boolean
  /** The error of the last read, or null. */
  error: ServiceError | null
}

export type VaultsStore = Store<VaultsState> & {
  /** Sets the user whose vaults are shown, or null. Clears the previous user's immediately. */
  show(userId: string | null): void
  /** Reads the list again. Always resolves; sets `error` on failure. */
  refresh(): Promise<void>
  /**
   * Creates a vault and adds it to the list. Rejects with `wallet_changed` unless it certainly belongs to the user whose vaults are
   * shown, because only its owner can use it.
   */
  create(policy: Policy, options?: CreateVaultOptions): Promise<Vault>
}

const NOTHING: VaultsState = { vaults: null, loading: false, error: null }

/** The state of `useVaults`, without React. */
export function createVaultsStore(client: ServiceClient): VaultsStore {
  const store = createStore(NOTHING)
  let shownUserId: string | null = null
  /** The read whose answer counts. */
  let current: object | undefined

  async function refresh(): Promise<void> {
    if (shownUserId === null) return
    const reading = {}
    current = reading
    store.set({ loading: true })
    const change = await readVaults(client, shownUserId).then(
      (vaults) => ({ vaults, error: null }),
      (error: unknown) => ({ error: toServiceError(error) }),
    )
    if (current === reading) store.set({ ...change, loading: false })
  }

  return {
    ...store,
    show(userId) {
      if (userId === shownUserId) return
      shownUserId = userId
      current = undefined
      store.set(NOTHING)
      void refresh()
    },
    refresh,
    async create(policy, options) {
      const owner = shownUserId
      await verifyUser(client, owner)
      const vault = await createVault(client, policy, options)
      // The key derives from the session's user, and the answer doesn't name that user.
      await verifyUser(client, owner)
      // A pending read may not include it.
      if (owner === shownUserId) await refresh()
      return vault
    },
  }
}

async function readVaults(client: ServiceClient, owner: string): Promise<Vault[]> {
  const vaults = await listVaults(client)
  await verifyUser(client, owner)
  return vaults
}

/** All tabs share the cookie, so another tab may have signed in another user. Without a session, the service's 401 is thrown. */
async function verifyUser({ config }: ServiceClient, userId: string | null): Promise<void> {
  const { id } = await createCall(config)('GET /auth/me', sessionUser)
  if (id !== userId) throw createError('wallet_changed', 'another user is signed in now')
}
