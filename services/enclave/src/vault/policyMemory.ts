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
