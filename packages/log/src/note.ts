import { toHex } from '@countersign/protocol/core'
import { fromBase64, toBase64 } from './base64.ts'
import { LogError } from './errors.ts'

/*
 * Signed notes, c2sp.org/signed-note: a text, an empty line, and lines with signatures. Input is untrusted until a signature is verified, so
 * the form is strict and bounded.
 */

/** A line below a note: the claimed key, and the signature without the key ID. */
export type NoteSignature = {
  name: string
  /** Four bytes of hex. Finds a key together with the name, but proves nothing. */
  keyId: string
  bytes: Uint8Array
}

export type Note = {
  /** Ends in a newline. */
  text: string
  signatures: readonly NoteSignature[]
}

/** Enough for 16 signatures of the largest kind, ML-DSA-87. */
export const MAX_NOTE_BYTES = 131_072
/** Enough for the log's signature, and two kinds of cosignatures by the largest number of witnesses. */
export const MAX_NOTE_SIGNATURES = 65

const PREFIX = '— '

/**
 * Parses a note. Its text is untrusted until `openNote`.
 *
 * @example
 * const { text, signatures } = parseNote(await response.text())
 */
export function parseNote(note: string): Note {
  assertPlainText(note)
  const split = note.lastIndexOf('\n\n')
  if (split < 0 || !note.endsWith('\n')) throw malformed('expected text, empty line and signatures')
  const lines = note.slice(split + 2, -1).split('\n')
  if (lines.length > MAX_NOTE_SIGNATURES) throw malformed(`more than ${MAX_NOTE_SIGNATURES} signatures`)
  return { text: note.slice(0, split + 1), signatures: lines.map(parseSignatureLine) }
}

/** Formats a note with its signatures, in order. */
export function formatNote({ text, signatures }: Note): string {
  const note = `${text}\n${formatSignatureLines(signatures)}`
  // Throws if the result can't be parsed again.
  parseNote(note)
  return note
}

/** Only the lines: a witness's response. */
export function formatSignatureLines(signatures: readonly NoteSignature[]): string {
  return signatures
    .map(({ name, keyId, bytes }) => `${PREFIX}${name} ${toBase64(concatKeyId(keyId, bytes))}\n`)
    .join('')
}

/** Not empty, without spaces and plus signs, which are separators in lines and keys. */
export function isKeyName(name: string): boolean {
  return name !== '' && !/[+\p{White_Space}]/u.test(name) && !hasControls(name) && !LONE_SURROGATE.test(name)
}

const LONE_SURROGATE = /\p{Surrogate}/u

function parseSignatureLine(line: string): NoteSignature {
  const [name = '', base64 = '', ...rest] = line.slice(PREFIX.length).split(' ')
  if (!line.startsWith(PREFIX) || rest.length > 0 || !isKeyName(name)) throw malformed('a line is not a signature')
  const bytes = fromBase64(base64)
  if (bytes === undefined || bytes.length < 5) throw malformed('a signature is not base64, or too short')
  return { name, keyId: toHex(bytes.subarray(0, 4)), bytes: bytes.slice(4) }
}

function concatKeyId(keyId: string, bytes: Uint8Array): Uint8Array {
  const all = new Uint8Array(4 + bytes.length)
  new DataView(all.buffer).setUint32(0, Number.parseInt(keyId, 16))
  all.set(bytes, 4)
  return all
}

/** UTF-8 of limited size, without control characters except newlines. */
function assertPlainText(note: string): void {
  if (typeof note !== 'string' || note.length > MAX_NOTE_BYTES) throw malformed(`more than ${MAX_NOTE_BYTES} bytes`)
  if (new TextEncoder().encode(note).length > MAX_NOTE_BYTES) throw malformed(`more than ${MAX_NOTE_BYTES} bytes`)
  if (hasControls(note) || LONE_SURROGATE.test(note)) throw malformed('not UTF-8 text, or a control character')
}

function hasControls(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 && code !== 0x0a) return true
  }
  return false
}

function malformed(details: string) {
  return new LogError('note_malformed', 'malformed note', { details })
}
