import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testOtherClients } from './sdk/clientTests.ts'
import { createHarness, SIGNED_OUT } from './sdk/harness.ts'
import { IMPLEMENTATION, testKinds } from './sdk/kindTests.ts'
import { testPayments } from './sdk/paymentTests.ts'
import { testSessions } from './sdk/sessionTests.ts'
import { toAppConfig } from './sdk/toAppConfig.ts'
import { testVaults } from './sdk/vaultTests.ts'
import { type Stack, startStack } from './startStack.ts'

// Set by `npm run e2e`.
const { CHROMIUM_PATH: executablePath = '' } = process.env

// One stack for all tests, because its start takes as long as most of them together.
describe('the SDK in a browser, against the real service', () => {
  let stack: Stack
  const sdk = createHarness(() => stack)

  beforeAll(async () => {
    stack = await startStack({
      executablePath,
      enclaveEnv: { IMPLEMENTATIONS: IMPLEMENTATION },
      toViteConfig: (config) => toAppConfig(config),
    })
  }, 180_000)
  afterAll(() => stack?.stop())

  testSessions(sdk)
  testPayments(sdk)
  testOtherClients(sdk)
  testKinds(sdk)
  testVaults(sdk)

  // Last, because the service stays down.
  test('§7 `logout` request fails: local state is cleared anyway; the caller may surface the error', async () => {
    const app = await sdk.openSignedIn('alice')
    await sdk.stack.backend.stopCoordinator('SIGKILL')
    await app.press('Sign out')
    expect(await app.waitForError()).toMatchObject({ code: 'network_unreachable' })
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
  })
})
