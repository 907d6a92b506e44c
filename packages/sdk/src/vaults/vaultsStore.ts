import type { Policy } from '@countersign/policy'
import type { ServiceError } from '@countersign/protocol'
import { createStore, type Store } from '../client/createStore.ts'
import { toServiceError } from '../client/errors.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import type { Vault } from './vault.ts'
import { createVault, listVaults } from './vaultCalls.ts'

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
  /** Makes a vault and adds it to the list. Rejects if it was not made. */
  create(policy: Policy): Promise<Vault>
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
    const change = await listVaults(client).then(
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
    async create(policy) {
      const owner = shown
      const vault = await createVault(client, policy)
      // A reading that is under way may not have it.
      if (owner !== null && owner === shown) await refresh()
      return vault
    },
  }
}
