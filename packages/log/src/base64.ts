/** RFC 4648 §4, with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let start = 0; start < bytes.length; start += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK))
  }
  return btoa(binary)
}

/** A safe number of function arguments in every engine. */
const CHUNK = 8_192

/** Decodes canonical base64. Returns undefined for other text, because unused bits could differ unnoticed. */
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

/** A hash in base64, on one line of a proof or checkpoint. */
export function parseHash(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = text.length === 44 ? fromBase64(text) : undefined
  return bytes?.length === 32 ? bytes : undefined
}

const MAX_HASHES = 63

/** One hash per line, as in requests and proofs. The limit of c2sp.org/tlog-witness is 63. */
export function parseHashLines(lines: readonly string[], malformed: (details: string) => Error): Uint8Array[] {
  if (lines.length > MAX_HASHES) throw malformed('too many hashes')
  return lines.map((line) => {
    const hash = parseHash(line)
    if (hash === undefined) throw malformed('a hash')
    return hash
  })
}
