import type { Hex } from '@countersign/sdk/client'
import { serviceConnector } from '@countersign/sdk/wagmi'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { defineChain, http, parseEther } from 'viem'
import { createConfig, useConnect, useConnection, useConnectors, useSendTransaction, WagmiProvider } from 'wagmi'
import { config } from './config.ts'
import { View } from './View.tsx'

const chain = defineChain({
  id: config.chainId,
  name: 'Local',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [config.rpcUrl] } },
})

let slugs: string[] = []

const wagmiConfig = createConfig({
  chains: [chain],
  transports: { [chain.id]: http() },
  multiInjectedProviderDiscovery: false,
  connectors: [
    serviceConnector({
      config,
      onSigned: ({ slug }) => {
        slugs = [...slugs, slug]
      },
    }),
  ],
})

/** An app that knows nothing of the service but the connector. */
function Wallet() {
  const { address, status } = useConnection()
  const [connector] = useConnectors()
  const connect = useConnect()
  const send = useSendTransaction()
  const [to, setTo] = useState('')
  const error = connect.error ?? send.error
  return (
    <>
      <button type="button" onClick={() => connector && connect.mutate({ connector })}>
        Connect
      </button>
      <input aria-label="To" value={to} onChange={(event) => setTo(event.target.value)} />
      <button type="button" onClick={() => send.mutate({ to: to as Hex, value: parseEther('0.01') })}>
        Pay
      </button>
      <View
        name="wagmi"
        value={{ status, address: address ?? null, txHash: send.data ?? null, error: error?.message ?? null, slugs }}
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
