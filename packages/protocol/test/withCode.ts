import { expect } from 'vitest'
import type { ProtocolErrorCode } from '../src/index.ts'

/** For `toThrow`: a service error with this code. */
export function withCode(code: ProtocolErrorCode) {
  return expect.objectContaining({ name: 'ServiceError', code, docsPath: `/errors#${code}` })
}
