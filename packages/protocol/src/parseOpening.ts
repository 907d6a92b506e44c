import { ServiceError } from './errors.ts'
import { toHex } from './hex.ts'
import { commitContent, commitSignature, malformed, type Opening, opening } from './opening.ts'
import { parse } from './schema.ts'
import { parseStrictJson } from './strictJson.ts'

/** A body of 32 KiB, with the approvals of a vault and what escaping may add. */
export const MAX_OPENING_BYTES = 262_144
/** The content may be nested 16 deep, inside four levels of its own. */
const MAX_OPENING_DEPTH = 24

/** The opening with one half replaced by its commitment, to show the other alone. */
export function withholdHalf(opening: Opening, half: keyof Opening): Opening {
  const { content, signature } = opening
  if (half === 'content')
    return typeof content === 'string' ? opening : { content: toHex(commitContent(content)), signature }
  return typeof signature === 'string' ? opening : { content, signature: toHex(commitSignature(signature)) }
}

/** Narrows to an opening of at least one half, each member in its one spelling. Whether the content hashes to its digest is not checked here. */
export function assertOpening(value: unknown): asserts value is Opening {
  parse(opening, value, malformed)
}

/** Parses an opening. White space, the order of members and escapes in strings don't matter: each half is hashed in canonical form. */
export function parseOpening(bytes: Uint8Array): Opening {
  let value: unknown
  try {
    value = parseStrictJson(bytes, { maxLength: MAX_OPENING_BYTES, maxDepth: MAX_OPENING_DEPTH })
  } catch (cause) {
    throw malformed(cause instanceof ServiceError ? cause.code : 'not JSON', cause)
  }
  assertCanonicalNumbers(new TextDecoder().decode(bytes))
  assertOpening(value)
  return value
}

/** `31337.0` and `3.1337e4` parse to the same number as `31337`, and `9007199254740993` is rounded. `text` is valid JSON. */
function assertCanonicalNumbers(text: string): void {
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g)) {
    if (!token.startsWith('"') && String(Number(token)) !== token) throw malformed('a number is not in canonical form')
  }
}
