import { availableParallelism } from 'node:os'
import { playwright } from '@vitest/browser-playwright'
import { defaultClientConditions, defaultServerConditions } from 'vite'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { chromiumArgs } from './scripts/findChromium.ts'
import { SlowFirst } from './scripts/slowFirst.ts'

// Set by scripts/test.ts; without a browser the browser project does not exist.
const executablePath = process.env.CHROMIUM_PATH

// Workspace packages export their TypeScript under `source`: tests run on it, so they never see a stale build.
const serverConditions = ['source', ...defaultServerConditions]
const clientConditions = ['source', ...defaultClientConditions]

// A machine with other work to do is no reason to fail; a test that hangs still ends.
const timeouts = { testTimeout: 120_000, hookTimeout: 120_000 }

const node: TestProjectInlineConfiguration = {
  resolve: { conditions: serverConditions },
  ssr: { resolve: { conditions: serverConditions } },
  test: {
    ...timeouts,
    name: 'node',
    environment: 'node',
    include: [
      '{packages,apps,services}/**/*.test.{ts,tsx}',
      'scripts/**/*.test.ts',
      '{contracts,docs,dev,deploy,e2e,trials/*}/*.test.ts',
    ],
    exclude: ['**/node_modules/**', '**/dist/**', '**/*.browser.test.{ts,tsx}'],
  },
}

const browser = (path: string): TestProjectInlineConfiguration => ({
  resolve: { conditions: clientConditions },
  test: {
    ...timeouts,
    name: 'browser',
    include: ['{packages,apps}/**/*.browser.test.{ts,tsx}'],
    exclude: ['**/node_modules/**', '**/dist/**'],
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

export default defineConfig({
  test: {
    retry: 0,
    // One more than there are cores: slow files wait for processes, leases and blocks part of the time.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: SlowFirst },
    ...timeouts,
    projects: executablePath ? [node, browser(executablePath)] : [node],
  },
})
