import { createRequire } from 'node:module'
import { defineConfig } from 'hardhat/config'

// Every task of hardhat loads this file before it would send anything.
process.env.HARDHAT_DISABLE_TELEMETRY = 'true'

export default defineConfig({
  solidity: {
    version: '0.8.37',
    // The compiler from npm, as WebAssembly: nothing is downloaded, and every platform builds the same bytes.
    path: createRequire(import.meta.url).resolve('solc/soljson.js'),
    settings: {
      // Deployed once, called often.
      optimizer: { enabled: true, runs: 1_000_000 },
      // Sepolia and Base Sepolia have had all of Cancun since 2024, and so have most chains a log could be put on.
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
