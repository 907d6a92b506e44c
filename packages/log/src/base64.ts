/** RFC 4648 §4, with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** The bytes of base64 in its one spelling; undefined for any other text, whose bits beyond the last byte could differ unseen. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  let binary: string
  try {
    binary = atob(text)
  } catch {
    return undefined
  }
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
  return toBase64(bytes) === text ? bytes : undefined
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
