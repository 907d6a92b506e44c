import { serviceConnector } from '@countersign/sdk/wagmi'
import { defineChain } from 'viem'
import { createConfig, http } from 'wagmi'

const rpcUrl = 'http://localhost:8545'

const chain = defineChain({
  id: 31337,
  name: 'Local chain',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [rpcUrl] } },
})

export const wagmiConfig = createConfig({
  chains: [chain],
  transports: { [chain.id]: http() },
  multiInjectedProviderDiscovery: false,
  connectors: [
    serviceConnector({
      config: { apiBaseUrl: 'http://localhost:8080', chainId: chain.id, rpcUrl },
      // No `onSigned`, because the opening of a sign-in is not needed later.
      onConfirm: (request) => request.kind === 'message' && window.confirm('Sign in to this app?'),
    }),
  ],
})
