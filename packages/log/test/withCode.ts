import { expect } from 'vitest'
import type { LogErrorCode } from '../src/errors.ts'

/** For `toThrow`: an error of this package with this code. */
export function withCode(code: LogErrorCode) {
  return expect.objectContaining({ name: 'LogError', code, docsPath: `/errors#${code}` })
}
