export {
  createTestService,
  type TestRequest,
  type TestRoute,
  type TestService,
  type TestServiceOptions,
} from './createTestService.ts'
export type { TestProblem, TestProblemCode } from './problems.ts'
export type { TestRpcError, TestRpcHandlers, TestTransaction } from './testChain.ts'
