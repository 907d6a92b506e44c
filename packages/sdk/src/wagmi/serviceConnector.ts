import { type Address, type EIP1193Provider, getAddress, SwitchChainError } from 'viem'
import { ChainNotConfiguredError, createConnector } from 'wagmi'
import type { ServiceClientConfig, SignedEvent } from '../client/connection.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import { createEip1193Provider } from '../eip1193/createEip1193Provider.ts'
import { isUnauthorized } from '../eip1193/errors.ts'
import type { ConfirmRequest } from '../eip1193/sendTransaction.ts'

export type ServiceConnectorParameters = (
  | { client: ServiceClient; config?: undefined }
  | { config: ServiceClientConfig; client?: undefined }
) & {
  /** Differs where an app has several: one for the user's own wallet, one for each vault ("countersign"). */
  id?: string | undefined
  /** What lists of wallets show ("Countersign"). */
  name?: string | undefined
  /** A `data:` URI or an address of an image. */
  icon?: string | undefined
  /**
   * Whether disconnecting ends the session with the service too (false). Without it the user stays signed in, and connecting
   * again needs no redirect.
   */
  signOutOnDisconnect?: boolean | undefined
  /** Starts the sign-in; a full-page redirect to `url` unless the app has another way. */
  onLogin?: ((url: string) => void | Promise<void>) | undefined
  /** Asks the user before a signature; false rejects as the user's refusal. The fees are not known yet: see the reference. */
  onConfirm?: ((request: ConfirmRequest) => boolean | Promise<boolean>) | undefined
  /**
   * Called after each signature; the slug leads to its proof. It is the only way to the opening of a message or of typed data, since
   * wagmi answers nothing but the signature.
   */
  onSigned?: ((signed: SignedEvent) => void) | undefined
}

type StorageItems = { [key: `${string}.connected`]: true }

serviceConnector.type = 'countersign' as const

/**
 * A wagmi connector for the wallet of the service. Connecting redirects to the sign-in where nobody is signed in (and rejects
 * with 4100, since the page is left); wagmi's reconnect finds the account on the way back, and after every reload, without
 * asking anyone. The wallet has one chain, that of the client, which must be among the chains of wagmi's config.
 * With the client of `toVaultClient` the account is a vault, which signs what its rules allow without approvals.
 *
 * @example
 * const config = createConfig({
 *   chains: [sepolia],
 *   transports: { [sepolia.id]: http() },
 *   connectors: [serviceConnector({ config: { apiBaseUrl: 'https://api.example.com', chainId: sepolia.id } })],
 * })
 */
export function serviceConnector(parameters: ServiceConnectorParameters) {
  const client = parameters.client ?? new ServiceClient(parameters.config)
  const { chainId } = client.config
  const { id = 'countersign', onConfirm, onSigned, onLogin = redirect } = parameters
  const connectedKey = `${id}.connected` as const
  // Without `onLogin`: only `connect` may send the user away, never a reconnect.
  const provider = createEip1193Provider(client, { onConfirm, onSigned })

  return createConnector<EIP1193Provider, Record<string, unknown>, StorageItems>((config) => {
    let stopListening: (() => void) | undefined

    function listen(onAccountsChanged: (accounts: Address[]) => void): void {
      stopListening?.()
      provider.on('accountsChanged', onAccountsChanged)
      stopListening = () => {
        provider.removeListener('accountsChanged', onAccountsChanged)
        stopListening = undefined
      }
    }

    async function requestAccounts(): Promise<readonly Address[]> {
      const accounts = await provider.request({ method: 'eth_requestAccounts' })
      return accounts.map((account) => getAddress(account))
    }

    async function login(): Promise<readonly Address[]> {
      // Remembered before the page is left: the page that comes back is another one.
      await config.storage?.setItem(connectedKey, true)
      await config.storage?.setItem('recentConnectorId', id)
      await onLogin(client.loginUrl({ returnTo: globalThis.location?.href }))
      return requestAccounts()
    }

    return {
      id,
      name: parameters.name ?? 'Countersign',
      type: serviceConnector.type,
      ...(parameters.icon === undefined ? {} : { icon: parameters.icon }),

      async connect({ isReconnecting, withCapabilities } = {}) {
        // Said at once: the wallet cannot go to another chain, so nothing would work later.
        if (!config.chains.some((chain) => chain.id === chainId)) throw new ChainNotConfiguredError()
        const accounts = await requestAccounts().catch((error: unknown) => {
          if (isReconnecting === true || !isUnauthorized(error)) throw error
          return login()
        })
        listen((changed) => this.onAccountsChanged(changed))
        await config.storage?.setItem(connectedKey, true)
        return {
          accounts: (withCapabilities ? accounts.map((address) => ({ address, capabilities: {} })) : accounts) as never,
          chainId,
        }
      },

      async disconnect() {
        stopListening?.()
        await config.storage?.removeItem(connectedKey)
        await provider.request({ method: 'wallet_revokePermissions', params: [{ eth_accounts: {} }] } as never)
        if (parameters.signOutOnDisconnect !== true) return
        try {
          await client.api.logout()
        } catch (error) {
          // The app is disconnected all the same; the caller learns that the session may live on.
          config.emitter.emit('disconnect')
          throw error
        }
      },

      async getAccounts() {
        const accounts = await provider.request({ method: 'eth_accounts' })
        return accounts.map((account) => getAddress(account))
      },

      getChainId: async () => chainId,
      getProvider: async () => provider,

      async isAuthorized() {
        // Without a storage there is no memory of a disconnect either; then the session decides.
        if (config.storage && !(await config.storage.getItem(connectedKey))) return false
        try {
          return (await client.api.me()) !== null
        } catch {
          return false
        }
      },

      async switchChain({ chainId: asked }) {
        const chain = config.chains.find((candidate) => candidate.id === asked)
        if (chain === undefined) throw new SwitchChainError(new ChainNotConfiguredError())
        if (asked !== chainId) {
          throw new SwitchChainError(new Error(`The wallet is only on chain ${chainId} and cannot switch to ${asked}.`))
        }
        return chain
      },

      onAccountsChanged(accounts) {
        if (accounts.length === 0) this.onDisconnect()
        else config.emitter.emit('change', { accounts: accounts.map((account) => getAddress(account)) })
      },

      onChainChanged(changed) {
        config.emitter.emit('change', { chainId: Number(changed) })
      },

      onDisconnect() {
        stopListening?.()
        config.emitter.emit('disconnect')
      },
    }
  })
}

function redirect(url: string): void {
  globalThis.location?.assign(url)
}
