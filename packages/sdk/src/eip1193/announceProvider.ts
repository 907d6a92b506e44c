import type { EIP1193Provider } from 'viem'

/** EIP-6963: the wallet's entry in a list of wallets. */
export type Eip6963ProviderInfo = {
  /** A version 4 UUID, new for each page. */
  uuid: string
  name: string
  /** A `data:` URI of a square image. */
  icon: `data:image/${string}`
  /** Reverse domain name, such as `com.example.wallet`. */
  rdns: string
}

/**
 * Announces the provider to the libraries of this page (EIP-6963), immediately and on request, until the returned function is called.
 * Any script of the page can then use the wallet. Without a `window` it does nothing.
 *
 * @example
 * const info = { uuid: crypto.randomUUID(), name: 'Countersign', icon: 'data:image/svg+xml,…', rdns: 'com.example.wallet' } as const
 * const stop = announceProvider({ provider: createEip1193Provider(client), info })
 */
export function announceProvider({
  provider,
  info,
}: {
  provider: EIP1193Provider
  info: Eip6963ProviderInfo
}): () => void {
  const { window } = globalThis
  if (window === undefined) return () => {}
  // Frozen, as the EIP requires, so that no library can replace the provider.
  const detail = Object.freeze({ info: Object.freeze({ ...info }), provider })
  const announce = () => {
    window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
  }
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
  return () => window.removeEventListener('eip6963:requestProvider', announce)
}
