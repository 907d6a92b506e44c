/** Reads stored JSON. Returns undefined if there is none or storage is blocked. */
export function readStored(storage: Storage, key: string): unknown {
  try {
    return JSON.parse(storage.getItem(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

/** Undefined removes the value. Blocked storage is ignored. */
export function writeStored(storage: Storage, key: string, value: unknown): void {
  try {
    if (value === undefined) storage.removeItem(key)
    else storage.setItem(key, JSON.stringify(value))
  } catch {
    // Full or blocked.
  }
}
