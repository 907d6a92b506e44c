import { ServiceError } from './errors.ts'

/** Distrust the bytes: they are no JSON, or JSON that two readers could read differently. */
export type StrictJsonErrorCode =
  | 'json_too_large'
  | 'json_not_utf8'
  | 'json_malformed'
  | 'json_too_deep'
  | 'json_duplicate_member'

export type StrictJsonLimits = { maxLength?: number; maxDepth?: number }

/**
 * Parses JSON that a stranger wrote. `JSON.parse` keeps the last of two members with one name without a word, while another
 * reader keeps the first; here that is refused, at any depth and however the names are escaped.
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
    // The parser's own error quotes the text.
    throw refused('json_malformed')
  }
  scanMembers(text, maxDepth)
  return value
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    // A byte order mark stays, for the parser to refuse: RFC 8259 §8.1 forbids it.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refused('json_not_utf8')
  }
}

/** `text` is valid JSON, so a string is a name exactly if a colon follows it, and brackets outside strings are balanced. */
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
