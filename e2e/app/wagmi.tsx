import type { Hex, Opening } from '@countersign/sdk/client'
import { serviceConnector } from '@countersign/sdk/wagmi'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { defineChain, http, parseEther } from 'viem'
import { createSiweMessage, generateSiweNonce } from 'viem/siwe'
import {
  createConfig,
  useConnect,
  useConnection,
  useConnectors,
  useSendTransaction,
  useSignMessage,
  WagmiProvider,
} from 'wagmi'
import { config } from './config.ts'
import { View } from './View.tsx'

const chain = defineChain({
  id: config.chainId,
  name: 'Local',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [config.rpcUrl] } },
})

let slugs: string[] = []
let opening: Opening | null = null

const wagmiConfig = createConfig({
  chains: [chain],
  transports: { [chain.id]: http() },
  multiInjectedProviderDiscovery: false,
  connectors: [
    serviceConnector({
      config,
      onSigned: (signed) => {
        slugs = [...slugs, signed.slug]
        // wagmi returns only the signature.
        if (signed.kind === 'off-chain') opening = signed.opening
      },
    }),
  ],
})

/** An app that uses only the connector. */
function Wallet() {
  const { address, status } = useConnection()
  const [connector] = useConnectors()
  const connect = useConnect()
  const send = useSendTransaction()
  const [to, setTo] = useState('')
  const signIn = useSignMessage()
  const [message, setMessage] = useState('')
  const error = connect.error ?? send.error ?? signIn.error

  function signInWithEthereum() {
    if (address === undefined) return
    const { host: domain, origin: uri } = window.location
    const asked = { address, domain, uri, chainId: chain.id, nonce: generateSiweNonce(), version: '1' } as const
    const text = createSiweMessage(asked)
    setMessage(text)
    signIn.mutate({ message: text })
  }

  return (
    <>
      <button type="button" onClick={() => connector && connect.mutate({ connector })}>
        Connect
      </button>
      <input aria-label="To" value={to} onChange={(event) => setTo(event.target.value)} />
      <button type="button" onClick={() => send.mutate({ to: to as Hex, value: parseEther('0.01') })}>
        Pay
      </button>
      <button type="button" onClick={signInWithEthereum}>
        Sign in with Ethereum
      </button>
      <View
        name="wagmi"
        value={{
          status,
          address: address ?? null,
          txHash: send.data ?? null,
          error: error?.message ?? null,
          slugs,
          signIn: { message, signature: signIn.data ?? null, opening },
        }}
      />
    </>
  )
}

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <WagmiProvider config={wagmiConfig}>
        <QueryClientProvider client={new QueryClient()}>
          <Wallet />
        </QueryClientProvider>
      </WagmiProvider>
    </StrictMode>,
  )
}
