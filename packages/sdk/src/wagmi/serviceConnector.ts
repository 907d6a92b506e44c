import { type Address, type EIP1193Provider, getAddress, SwitchChainError } from 'viem'
import { ChainNotConfiguredError, createConnector } from 'wagmi'
import type { ServiceClientConfig, SignedEvent } from '../client/connection.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import { createEip1193Provider } from '../eip1193/createEip1193Provider.ts'
import { isUnauthorized } from '../eip1193/errors.ts'
import type { ConfirmRequest } from '../eip1193/sendTransaction.ts'
import { toLoginUrl } from '../eip1193/toLoginUrl.ts'

export type ServiceConnectorParameters = (
  | { client: ServiceClient; config?: undefined }
  | { config: ServiceClientConfig; client?: undefined }
) & {
  /** Must differ if an app has several connectors, for example for vaults. Defaults to "countersign". */
  id?: string | undefined
  /** Shown in lists of wallets. Defaults to "Countersign". */
  name?: string | undefined
  /** A `data:` URI or URL of an image. */
  icon?: string | undefined
  /**
   * Whether disconnecting also ends the session. Defaults to false: the user stays signed in and can reconnect without a redirect.
   */
  signOutOnDisconnect?: boolean | undefined
  /** Starts the sign-in. Defaults to a full-page redirect to `url`. */
  onLogin?: ((url: string) => void | Promise<void>) | undefined
  /** Asks the user before a signature. False rejects the request. The fees are not known yet. */
  onConfirm?: ((request: ConfirmRequest) => boolean | Promise<boolean>) | undefined
  /**
   * Called after each signature with the slug of its proof. The only way to get the opening of a message or typed data, because wagmi
   * returns only the signature.
   */
  onSigned?: ((signed: SignedEvent) => void) | undefined
}

type StorageItems = { [key: `${string}.connected`]: true }

serviceConnector.type = 'countersign' as const

/**
 * A wagmi connector for the service's wallet. Without a session, connecting redirects to the sign-in (and rejects with 4100). After the
 * sign-in and after each reload, wagmi reconnects without a question. The client's chain must be in wagmi's config.
 * With the client of `toVaultClient`, the account is a vault, which signs what its rules allow without approvals.
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
  // No `onLogin` here: only `connect` may leave the page, never a reconnect.
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
      // Stored before the redirect, for the page that loads afterwards.
      await config.storage?.setItem(connectedKey, true)
      await config.storage?.setItem('recentConnectorId', id)
      await onLogin(await toLoginUrl(client))
      return requestAccounts()
    }

    return {
      id,
      name: parameters.name ?? 'Countersign',
      type: serviceConnector.type,
      ...(parameters.icon === undefined ? {} : { icon: parameters.icon }),

      async connect({ isReconnecting, withCapabilities } = {}) {
        // The wallet can't switch to another chain.
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
          // Disconnect the app anyway. The error tells the caller that the session may still be open.
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
        // Without storage, only the session decides.
        if (config.storage && !(await config.storage.getItem(connectedKey))) return false
        try {
          return (await client.api.me()) !== null
        } catch {
          return false
        }
      },

      async switchChain({ chainId: requested }) {
        const chain = config.chains.find((candidate) => candidate.id === requested)
        if (chain === undefined) throw new SwitchChainError(new ChainNotConfiguredError())
        if (requested !== chainId) {
          throw new SwitchChainError(
            new Error(`The wallet is only on chain ${chainId} and cannot switch to ${requested}.`),
          )
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
