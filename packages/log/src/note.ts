import { toHex } from '@countersign/protocol/core'
import { fromBase64, toBase64 } from './base64.ts'
import { LogError } from './errors.ts'

/*
 * Signed notes, c2sp.org/signed-note: a text, an empty line, and lines with signatures. Everything here comes from strangers before a
 * signature is checked, so the form is strict and bounded.
 */

/** A line below a note: whose it says it is, and the bytes, which begin with no key id any more. */
export type NoteSignature = {
  name: string
  /** Four bytes of hex. With the name it finds a key; by itself it proves nothing. */
  keyId: string
  bytes: Uint8Array
}

export type Note = {
  /** Ends in a newline. */
  text: string
  signatures: readonly NoteSignature[]
}

/** Room for 16 signatures of the largest kind that there is, ML-DSA-87. */
export const MAX_NOTE_BYTES = 131_072
/** The log's, and of the most witnesses that a policy has both kinds. */
export const MAX_NOTE_SIGNATURES = 65

const PREFIX = '— '

/**
 * Reads a note. Nothing of it can be believed before `openNote`.
 *
 * @example
 * const { text, signatures } = parseNote(await response.text())
 */
export function parseNote(note: string): Note {
  assertPlainText(note)
  const split = note.lastIndexOf('\n\n')
  if (split < 0 || !note.endsWith('\n')) throw malformed('no text, empty line and signatures')
  const lines = note.slice(split + 2, -1).split('\n')
  if (lines.length > MAX_NOTE_SIGNATURES) throw malformed(`more than ${MAX_NOTE_SIGNATURES} signatures`)
  return { text: note.slice(0, split + 1), signatures: lines.map(parseSignatureLine) }
}

/** The note with its signatures, in their order. */
export function formatNote({ text, signatures }: Note): string {
  const note = `${text}\n${formatSignatureLines(signatures)}`
  // What cannot be read again is not written.
  parseNote(note)
  return note
}

/** The lines alone: what a witness answers. */
export function formatSignatureLines(signatures: readonly NoteSignature[]): string {
  return signatures
    .map(({ name, keyId, bytes }) => `${PREFIX}${name} ${toBase64(concatKeyId(keyId, bytes))}\n`)
    .join('')
}

/** Not empty, without spaces and without plus signs, which separate the parts of lines and keys. */
export function isKeyName(name: string): boolean {
  return name !== '' && !/[+\p{White_Space}]/u.test(name) && !hasControls(name) && !LONE_SURROGATE.test(name)
}

const LONE_SURROGATE = /\p{Surrogate}/u

function parseSignatureLine(line: string): NoteSignature {
  const [name = '', base64 = '', ...rest] = line.slice(PREFIX.length).split(' ')
  if (!line.startsWith(PREFIX) || rest.length > 0 || !isKeyName(name)) throw malformed('a line is no signature')
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

/** UTF-8 without control characters but newlines, and bounded. */
function assertPlainText(note: string): void {
  if (typeof note !== 'string' || note.length > MAX_NOTE_BYTES) throw malformed(`more than ${MAX_NOTE_BYTES} bytes`)
  if (new TextEncoder().encode(note).length > MAX_NOTE_BYTES) throw malformed(`more than ${MAX_NOTE_BYTES} bytes`)
  if (hasControls(note) || LONE_SURROGATE.test(note)) throw malformed('a control character, or no text in UTF-8')
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
