import { ServiceError } from './errors.ts'
import { toHex } from './hex.ts'
import { commitContent, commitSignature, malformed, type Opening, opening } from './opening.ts'
import { type OwnerOpening, ownerOpening } from './owner.ts'
import { parse } from './schema.ts'
import { parseStrictJson } from './strictJson.ts'

/** Room for a body of 32 KiB, a vault's approvals, and the growth through escaping. */
export const MAX_OPENING_BYTES = 262_144
/** The content may nest 16 levels, inside four levels of the opening. */
const MAX_OPENING_DEPTH = 24

/** Replaces one half of the opening by its commitment, to show only the other half. */
export function withholdHalf(opening: Opening, half: keyof Opening): Opening {
  const { content, signature } = opening
  if (half === 'content')
    return typeof content === 'string' ? opening : { content: toHex(commitContent(content)), signature }
  return typeof signature === 'string' ? opening : { content, signature: toHex(commitSignature(signature)) }
}

/** Narrows to an opening with at least one half, each member in its one spelling. Doesn't compare the content with its digest. */
export function assertOpening(value: unknown): asserts value is Opening {
  parse(opening, value, malformed)
}

/** Parses an opening. White space, the order of members and escapes in strings don't matter: each half is hashed in canonical form. */
export function parseOpening(bytes: Uint8Array): Opening {
  const value = parseOpeningJson(bytes)
  assertOpening(value)
  return value
}

/** Parses what opens the owner commitment of an address, in the same way. */
export function parseOwnerOpening(bytes: Uint8Array): OwnerOpening {
  return parse(ownerOpening, parseOpeningJson(bytes), malformed)
}

function parseOpeningJson(bytes: Uint8Array): unknown {
  let value: unknown
  try {
    value = parseStrictJson(bytes, { maxLength: MAX_OPENING_BYTES, maxDepth: MAX_OPENING_DEPTH })
  } catch (cause) {
    throw malformed(cause instanceof ServiceError ? cause.code : 'not JSON', cause)
  }
  assertCanonicalNumbers(new TextDecoder().decode(bytes))
  return value
}

/** `31337.0` and `3.1337e4` parse to the same number as `31337`, and `9007199254740993` is rounded. `text` is valid JSON. */
function assertCanonicalNumbers(text: string): void {
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g)) {
    if (!token.startsWith('"') && String(Number(token)) !== token) throw malformed('a number is not in canonical form')
  }
}
