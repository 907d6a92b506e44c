import { ServiceError } from './errors.ts'

/** Distrust the bytes: they are not JSON, or ambiguous. */
export type StrictJsonErrorCode =
  | 'json_too_large'
  | 'json_not_utf8'
  | 'json_malformed'
  | 'json_too_deep'
  | 'json_duplicate_member'

export type StrictJsonLimits = { maxLength?: number; maxDepth?: number }

/**
 * Parses untrusted JSON. If a name occurs twice in an object, `JSON.parse` silently uses the last and other parsers the first. This function
 * rejects duplicates, at any depth and in any spelling of the names.
 *
 * @example
 * const claims = parseStrictJson(payload)
 */
export function parseStrictJson(bytes: Uint8Array, limits: StrictJsonLimits = {}): unknown {
  const { maxLength = 16_384, maxDepth = 16 } = limits
  if (bytes.length > maxLength) throw refused('json_too_large')
  const text = decodeUtf8(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Without the parser's error, which quotes the text.
    throw refused('json_malformed')
  }
  scanMembers(text, maxDepth)
  return value
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    // Keeps a byte order mark, so that the parser rejects it: RFC 8259 §8.1.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refused('json_not_utf8')
  }
}

/** `text` is valid JSON, so a string is a name only if a colon follows it, and brackets outside strings are balanced. */
function scanMembers(text: string, maxDepth: number): void {
  const open: Set<string>[] = []
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index)
    if (character === '{' || character === '[') {
      open.push(new Set())
      if (open.length > maxDepth) throw refused('json_too_deep')
    } else if (character === '}' || character === ']') {
      open.pop()
    } else if (character === '"') {
      const end = findStringEnd(text, index)
      if (isColonNext(text, end)) {
        const name: string = JSON.parse(text.slice(index, end))
        const names = open.at(-1)
        if (names?.has(name)) throw refused('json_duplicate_member')
        names?.add(name)
      }
      index = end - 1
    }
  }
}

/** The index after the closing quote. */
function findStringEnd(text: string, start: number): number {
  let index = start + 1
  while (text.charAt(index) !== '"') index += text.charAt(index) === '\\' ? 2 : 1
  return index + 1
}

function isColonNext(text: string, start: number): boolean {
  let index = start
  while (index < text.length && ' \t\n\r'.includes(text.charAt(index))) index++
  return text.charAt(index) === ':'
}

function refused(code: StrictJsonErrorCode) {
  return new ServiceError<StrictJsonErrorCode>(code, 'refused JSON')
}
