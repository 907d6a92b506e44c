export const config = { apiBaseUrl: 'http://localhost:8080', chainId: 31337, rpcUrl: 'http://localhost:8545' }
