import { expect } from 'vitest'

/** An error of the SDK with this code, whatever its words, and with these properties. */
export function withCode(code: string, more: object = {}) {
  return expect.objectContaining({ name: 'ServiceError', code, ...more })
}
