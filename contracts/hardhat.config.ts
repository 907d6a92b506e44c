import { createRequire } from 'node:module'
import { defineConfig } from 'hardhat/config'

// Hardhat loads this file before any task, so before it could send telemetry.
process.env.HARDHAT_DISABLE_TELEMETRY = 'true'

export default defineConfig({
  solidity: {
    version: '0.8.37',
    // The compiler from npm, as WebAssembly. It needs no download and builds the same bytes on every platform.
    path: createRequire(import.meta.url).resolve('solc/soljson.js'),
    settings: {
      // Optimizes for calls instead of deployment, because the contract is called often.
      optimizer: { enabled: true, runs: 1_000_000 },
      // Sepolia, Base Sepolia and most other chains have supported Cancun since 2024.
      evmVersion: 'cancun',
    },
  },
  paths: {
    sources: 'src',
    tests: { solidity: 'test' },
    artifacts: 'artifacts',
    cache: 'cache',
  },
  test: { solidity: { fuzz: { runs: 256 } } },
})
