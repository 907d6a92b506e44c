import { hash } from 'node:crypto'

/** What is known of policies, by their hash, up to so many bytes. What was used least recently is forgotten first. */
export type PolicyMemory<Value> = {
  get(hash: string): Value | undefined
  /** `bytes` is the length of the policy's text. */
  set(hash: string, value: Value, bytes: number): void
}

/** What an entry takes beside the text, its name included. Without it, texts of a few bytes would fill far more than the bound. */
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
      // A Map keeps the order of insertion, so the first is the one that was used least recently.
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
