import { expect } from 'vitest'

/** Matches an error of the SDK with this code and these properties, and any message. */
export function withCode(code: string, more: object = {}) {
  return expect.objectContaining({ name: 'ServiceError', code, ...more })
}
