import { expect } from 'vitest'

/** For `toThrow` and `rejects.toThrow`: an error with this code, whose details contain this text. */
export function withCode(code: string, details = '') {
  return expect.objectContaining({ code, details: expect.stringContaining(details) })
}
