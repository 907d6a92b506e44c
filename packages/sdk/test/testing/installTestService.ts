import { onTestFinished } from 'vitest'
import { createTestService } from '../../src/testing/createTestService.ts'
import type { TestService, TestServiceOptions } from '../../src/testing/testService.ts'

/** Installs a service until the end of the test. Another one that the test installs replaces it. */
export function installTestService(options?: TestServiceOptions): TestService {
  const service = createTestService(options)
  onTestFinished(service.install())
  return service
}
