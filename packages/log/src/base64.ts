/** RFC 4648 §4, with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let start = 0; start < bytes.length; start += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK))
  }
  return btoa(binary)
}

/** As many as a function takes for its arguments anywhere. */
const CHUNK = 8_192

/** The bytes of base64 in its one spelling; undefined for any other text, whose bits beyond the last byte could differ unseen. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  let binary: string
  try {
    binary = atob(text)
  } catch {
    return undefined
  }
  if (btoa(binary) !== text) return undefined
  const bytes = new Uint8Array(binary.length)
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index)
  return bytes
}

/** A hash in base64, as proofs and checkpoints have them on a line of their own. */
export function parseHash(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = text.length === 44 ? fromBase64(text) : undefined
  return bytes?.length === 32 ? bytes : undefined
}

const MAX_HASHES = 63

/** Hashes one below the other, as in requests and proofs; c2sp.org/tlog-witness ends at 63. */
export function parseHashLines(lines: readonly string[], malformed: (details: string) => Error): Uint8Array[] {
  if (lines.length > MAX_HASHES) throw malformed('too many hashes')
  return lines.map((line) => {
    const hash = parseHash(line)
    if (hash === undefined) throw malformed('a hash')
    return hash
  })
}
