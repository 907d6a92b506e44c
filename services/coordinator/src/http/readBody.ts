import { isPlainObject, parseStrictJson, ServiceError } from '@countersign/protocol'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import { CoordinatorError } from '../errors.ts'
import type { Incoming } from './context.ts'
import { isNamedTwice } from './guards.ts'

/**
 * Limits arrays, objects and commas together. A signing request has about ten. Parsing a body full of brackets would block the event loop for
 * tens of milliseconds.
 */
const MAX_PARTS = 1000
const [QUOTE, BACKSLASH, LIST, OBJECT, COMMA] = [0x22, 0x5c, 0x5b, 0x7b, 0x2c]

/** Rejects the types that a page can send without a preflight, such as `text/plain` and forms. */
const JSON_TYPE = /^application\/json[ \t]*(?:;.*)?$/i

type JsonLimits = { maxParts?: number; maxBytes?: number }

/** Parses the body as JSON. Returns undefined for an empty body of any content type. */
export async function readJsonBody(
  incoming: Incoming,
  { maxParts = MAX_PARTS, maxBytes = MAX_BODY_BYTES }: JsonLimits = {},
): Promise<unknown> {
  const bytes = await readBytes(incoming, maxBytes)
  if (bytes.length === 0) return undefined
  if (!JSON_TYPE.test(getContentType(incoming))) {
    throw new CoordinatorError('unsupported_media_type', 'the body must be JSON')
  }
  if (hasTooManyParts(bytes, maxParts)) {
    throw new CoordinatorError('invalid_request', 'too many members', { details: 'the body has too many members' })
  }
  try {
    return parseStrictJson(bytes, { maxLength: MAX_BODY_BYTES, maxDepth: MAX_PARTS })
  } catch (error) {
    // Two parsers may choose different duplicates: a user could see one value and sign the other.
    const isTwice = error instanceof ServiceError && error.code === 'json_duplicate_member'
    const options = isTwice ? { details: 'duplicate member' } : {}
    throw new CoordinatorError('invalid_json', 'the body is not JSON', options)
  }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;.*)?$/i

/** Parses the fields of a form. Any page can post a form without a preflight, so use this only in handlers that change nothing. */
export async function readFormBody(incoming: Incoming): Promise<URLSearchParams> {
  const bytes = await readBytes(incoming)
  if (!FORM_TYPE.test(getContentType(incoming))) {
    const details = 'the body must be a form'
    throw new CoordinatorError('unsupported_media_type', details, { details })
  }
  return new URLSearchParams(new TextDecoder().decode(bytes))
}

/** Node uses the first of two content types. If there are two, this uses neither. */
function getContentType({ rawHeaders, headers }: Incoming): string {
  return isNamedTwice(rawHeaders, 'content-type') ? '' : (headers['content-type'] ?? '')
}

/** Chunks are joined after this many, so that a body sent byte by byte doesn't use much more memory than its size. */
const MAX_CHUNKS = 64

/** An attacker controls the body's length, so bytes are counted as they arrive, regardless of `Content-Length`. */
function readBytes(incoming: Incoming, maxBytes = MAX_BODY_BYTES): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (Number(incoming.headers['content-length']) > maxBytes) return reject(tooLarge())
    let chunks: Uint8Array[] = []
    let length = 0
    incoming.on('data', (chunk: Uint8Array) => {
      length += chunk.length
      chunks.push(chunk)
      if (chunks.length > MAX_CHUNKS) chunks = [Buffer.concat(chunks)]
      if (length <= maxBytes) return
      incoming.removeAllListeners('data').pause()
      reject(tooLarge())
    })
    incoming.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)))
    incoming.on('error', () => reject(endedEarly()))
    incoming.on('close', () => {
      if (!incoming.readableEnded) reject(endedEarly())
    })
  })
}

/** Scans the bytes once, before parsing. In UTF-8, these byte values occur only as these characters. */
function hasTooManyParts(bytes: Uint8Array, maxParts: number): boolean {
  let parts = 0
  let isText = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === QUOTE) isText = !isText
    else if (isText && byte === BACKSLASH) index += 1
    else if (!isText && (byte === LIST || byte === OBJECT || byte === COMMA)) parts += 1
    if (parts > maxParts) return true
  }
  return false
}

/** Parses the body of a call whose parameters are optional. An empty body counts as `{}`. */
export async function readOptionalBody(incoming: Incoming): Promise<unknown> {
  const body = await readJsonBody(incoming)
  return body === undefined ? {} : body
}

/** For calls without parameters: no body, or an empty object. */
export function assertEmptyBody(body: unknown): void {
  if (body === undefined) return
  const isEmpty = isPlainObject(body) && Object.keys(body).length === 0
  if (!isEmpty) throw new CoordinatorError('invalid_request', 'no body expected', { details: 'send no body, or {}' })
}

/** A caller that disconnects is not a failure of this service. */
function endedEarly() {
  return new CoordinatorError('invalid_request', 'the body ended early', { details: 'the body ended early' })
}

function tooLarge() {
  return new CoordinatorError('body_too_large', 'the body is too large')
}
