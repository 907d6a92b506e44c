import { hash } from 'node:crypto'
import { createPolicyMemory } from './policyMemory.ts'

/** The texts of policies, which callers name by their hash. Whether a text is a policy is decided where it is used. */
export type PolicyTexts = {
  /** Answers its hash, 32 bytes of hex. */
  add(text: string): string
  get(hash: string): string | undefined
}

/** About a thousand of the largest, and 65,000 of the smallest. */
const MAX_BYTES = 16_777_216

export function createPolicyTexts({ maxBytes = MAX_BYTES }: { maxBytes?: number } = {}): PolicyTexts {
  const memory = createPolicyMemory<string>({ maxBytes })
  return {
    add(text) {
      const name = hash('sha256', text, 'hex')
      memory.set(name, text, Buffer.byteLength(text))
      return name
    },
    get: memory.get,
  }
}
