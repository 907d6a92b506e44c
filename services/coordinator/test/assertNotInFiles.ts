import { expect } from 'vitest'
import type { Backend } from './backend.ts'

/**
 * No secret is in a file of the embedded database, where alice has signed in. What was deleted is still in there, and what is not in
 * any table.
 */
export async function assertNotInFiles(backend: Backend, secrets: readonly string[]): Promise<void> {
  const files = await backend.readDataFiles()
  expect(files.some((file) => file.includes('alice@example.com'))).toBe(true)
  for (const secret of secrets) {
    // Only what is hex from end to end has bytes: of a code, a few letters at its start could pass for some.
    const forms = /^[0-9a-f]{64}$/.test(secret) ? [secret, Buffer.from(secret, 'hex')] : [secret]
    for (const form of forms) expect(files.some((file) => file.includes(form))).toBe(false)
  }
}
