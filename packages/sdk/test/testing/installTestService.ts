import { onTestFinished } from 'vitest'
import { createTestService } from '../../src/testing/createTestService.ts'
import type { TestService, TestServiceOptions } from '../../src/testing/testService.ts'

/** A service that answers until the test is over. The next one that a test installs answers instead of it. */
export function installTestService(options?: TestServiceOptions): TestService {
  const service = createTestService(options)
  onTestFinished(service.install())
  return service
}
