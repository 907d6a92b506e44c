import { availableParallelism } from 'node:os'
import { playwright } from '@vitest/browser-playwright'
import { defaultClientConditions, defaultServerConditions } from 'vite'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { chromiumArgs } from './scripts/findChromium.ts'
import { SlowFirst } from './scripts/slowFirst.ts'

// Set by scripts/test.ts; without a browser the browser project does not exist.
const executablePath = process.env.CHROMIUM_PATH
// Set by `npm run e2e`.
const isEndToEnd = process.env.E2E === '1'
// Set by scripts/test.ts, for `npm test` and `npm run check` without arguments.
const isShort = process.env.TEST_SHORT === '1'

// Workspace packages export their TypeScript under `source`: tests run on it, so they never see a stale build.
const serverConditions = ['source', ...defaultServerConditions]
const clientConditions = ['source', ...defaultClientConditions]

// Set by scripts/testArchitecture.ts.
const isEmulated = process.env.TEST_EMULATED === '1'

// A machine with other work to do is no reason to fail; a test that hangs still ends.
const factor = isEmulated ? 10 : 1
const timeouts = {
  testTimeout: 120_000 * factor,
  hookTimeout: 120_000 * factor,
  expect: { poll: { timeout: 30_000 * factor } },
}

// Machine code runs only on its own processor.
const isX64 = process.arch === 'x64' && !isEmulated
const exclude = ['**/node_modules/**', '**/dist/**', ...(isX64 ? [] : ['**/*.x64.test.ts'])]

// Files that start processes, nodes or browsers of their own. In folders of such files the others are named, so that a new one belongs
// here until somebody has looked.
const processFiles = [
  'apps/verifier/src/cli.test.ts',
  'packages/testing/src/!(localAccounts).test.ts',
  'conformance/receipts/{startVerifier,differential}.test.ts',
  'packages/testing/src/stack/!(scope).test.ts',
  '{packages,apps}/*/test/*.test.ts',
  'packages/service/src/runService.test.ts',
  'services/coordinator/src/{admin,budgets,coordinator,doctor,logged,offChain,pipeline,workers}.test.ts',
  'services/enclave/src/{enclave,loggedEnclave,server}.test.ts',
  'services/witness/src/server.test.ts',
  'services/enclave/src/rootSecret/drill.test.ts',
  'contracts/!(abi|parseDeployOptions).test.ts',
  'docs/samples.test.ts',
  'deploy/!(compose|containers|dstack|kubernetes|manifests).test.ts',
  'dev/!(chainLedger|envExample|humanLine|options|state|voice).test.ts',
  'e2e/{docs,journey}.test.ts',
  'scripts/{bootstrap,testArchitecture}.test.ts',
  'trials/run.test.ts',
  'trials/!(bench)/*.test.ts',
]

/** Tests of the tools around the service. `npm test` runs one file of each; `npm run test:all` runs the rest. */
const toolFolders = ['trials', 'dev', 'scripts', 'deploy', 'packages/testing']
const smokeUnits = ['deploy/manifests.test.ts', 'scripts/lockfiles.test.ts']
const smokeProcesses = ['dev/main.test.ts', 'packages/testing/src/stack/startBackend.test.ts', 'trials/run.test.ts']

const unitFiles = isShort
  ? ['{packages/!(testing),apps,services,docs,contracts,conformance,verifiers}/**/*.test.{ts,tsx}', ...smokeUnits]
  : ['{packages,apps,services,scripts,docs,contracts,conformance,verifiers,deploy,dev,trials}/**/*.test.{ts,tsx}']
const isTool = (path: string) => toolFolders.some((folder) => path.startsWith(`${folder}/`))
const runProcessFiles = isShort ? [...processFiles.filter((path) => !isTool(path)), ...smokeProcesses] : processFiles

const node = {
  resolve: { conditions: serverConditions },
  ssr: { resolve: { conditions: serverConditions } },
}

// `isolate: false`: a worker imports a module once, not once for each file. A test undoes what it changes of timers, globals and the
// environment.
const unit: TestProjectInlineConfiguration = {
  ...node,
  test: {
    ...timeouts,
    name: 'unit',
    include: unitFiles,
    exclude: [...exclude, ...processFiles, '**/*.browser.test.{ts,tsx}'],
    isolate: false,
  },
}

const processes: TestProjectInlineConfiguration = {
  ...node,
  test: { ...timeouts, name: 'processes', include: runProcessFiles, exclude, isolate: false },
}

/** All that people and apps do, in a browser on the whole service: minutes, so that `npm test` has one journey of it. */
const endToEnd: TestProjectInlineConfiguration = {
  ...node,
  test: { ...timeouts, name: 'e2e', include: ['e2e/*.test.ts'], exclude, isolate: false },
}

const browser = (path: string): TestProjectInlineConfiguration => ({
  resolve: { conditions: clientConditions },
  test: {
    ...timeouts,
    name: 'browser',
    include: ['{packages,apps}/**/*.browser.test.{ts,tsx}'],
    exclude,
    // One page for all files: it loads the apps once. A test leaves it as it was: no globals, no stored items, the viewport's size.
    isolate: false,
    setupFiles: ['apps/web/test/browserSetup.ts'],
    browser: {
      enabled: true,
      headless: true,
      screenshotFailures: false,
      provider: playwright({
        launchOptions: {
          executablePath: path,
          args: [...chromiumArgs],
        },
      }),
      instances: [{ browser: 'chromium' }],
    },
  },
})

const projects = executablePath ? [unit, processes, browser(executablePath)] : [unit, processes]

export default defineConfig({
  test: {
    retry: 0,
    globalSetup: './packages/testing/src/testDatabase.ts',
    // Two more than there are cores: slow files wait for processes, leases and blocks part of the time. Vitest fails if a worker needs
    // more than a minute to start, so emulated tests get no extra workers.
    maxWorkers: availableParallelism() + (isEmulated ? 0 : 2),
    sequence: { sequencer: SlowFirst },
    ...timeouts,
    projects: isEndToEnd ? [endToEnd] : projects,
  },
})
