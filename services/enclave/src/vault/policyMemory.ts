import { hash } from 'node:crypto'

/** A cache by policy hash, limited in bytes. Evicts the least recently used entry. */
export type PolicyMemory<Value> = {
  get(hash: string): Value | undefined
  /** `bytes` is the length of the policy's text. */
  set(hash: string, value: Value, bytes: number): void
}

/** The cost of an entry apart from its text. Without it, texts of a few bytes would fill far more than the limit. */
export const ENTRY_BYTES = 256

export function createPolicyMemory<Value>({ maxBytes }: { maxBytes: number }): PolicyMemory<Value> {
  const entries = new Map<string, { value: Value; bytes: number }>()
  let held = 0

  function remove(hash: string) {
    held -= entries.get(hash)?.bytes ?? 0
    entries.delete(hash)
  }

  return {
    get(hash) {
      const entry = entries.get(hash)
      if (entry === undefined) return undefined
      // A Map keeps the order of insertion, so the first entry is the least recently used.
      entries.delete(hash)
      entries.set(hash, entry)
      return entry.value
    },
    set(hash, value, textBytes) {
      const bytes = textBytes + ENTRY_BYTES
      remove(hash)
      entries.set(hash, { value, bytes })
      held += bytes
      for (const oldest of entries.keys()) {
        if (held <= maxBytes) break
        remove(oldest)
      }
    },
  }
}

/** The texts of policies, which callers name by hash. The user of a text decides whether it is a valid policy. */
export type PolicyTexts = {
  /** Returns its hash: 32 bytes, hex. */
  add(text: string): string
  get(hash: string): string | undefined
}

/** About a thousand of the largest, or 65,000 of the smallest. */
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
