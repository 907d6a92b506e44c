import { isPlainObject, parseStrictJson, ServiceError } from '@countersign/protocol'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import { CoordinatorError } from '../errors.ts'
import type { Incoming } from './context.ts'
import { isNamedTwice } from './guards.ts'

/** Lists, objects and commas together; a signing has ten. So many brackets as fit would keep the thread for tens of milliseconds. */
const MAX_PARTS = 1000
const [QUOTE, BACKSLASH, LIST, OBJECT, COMMA] = [0x22, 0x5c, 0x5b, 0x7b, 0x2c]

/** Only this essence: what a page may send without a preflight (`text/plain`, forms) never reaches a handler as a body. */
const JSON_TYPE = /^application\/json[ \t]*(?:;.*)?$/i

type JsonLimits = { maxParts: number }

/** The JSON value of a body; undefined for an empty one, whatever its content type. */
export async function readJsonBody(
  incoming: Incoming,
  { maxParts }: JsonLimits = { maxParts: MAX_PARTS },
): Promise<unknown> {
  const bytes = await readBytes(incoming)
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
    // What the caller showed somebody may be the first of the two, and what is signed the last.
    const isTwice = error instanceof ServiceError && error.code === 'json_duplicate_member'
    const options = isTwice ? { details: 'duplicate member' } : {}
    throw new CoordinatorError('invalid_json', 'the body is not JSON', options)
  }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;.*)?$/i

/** The fields of a form. Any page may post one, without a preflight: only for handlers that change nothing by it. */
export async function readFormBody(incoming: Incoming): Promise<URLSearchParams> {
  const bytes = await readBytes(incoming)
  if (!FORM_TYPE.test(getContentType(incoming))) {
    const details = 'the body must be a form'
    throw new CoordinatorError('unsupported_media_type', details, { details })
  }
  return new URLSearchParams(new TextDecoder().decode(bytes))
}

/** Node reads the first of two: neither is used. */
function getContentType({ rawHeaders, headers }: Incoming): string {
  return isNamedTwice(rawHeaders, 'content-type') ? '' : (headers['content-type'] ?? '')
}

/** So many parts are joined, so that a sender of single bytes costs little more memory than what it sends. */
const MAX_CHUNKS = 64

/** A body is attacker-controlled in length too, so it is counted as it arrives, whatever `Content-Length` says. */
function readBytes(incoming: Incoming): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (Number(incoming.headers['content-length']) > MAX_BODY_BYTES) return reject(tooLarge())
    let chunks: Uint8Array[] = []
    let length = 0
    incoming.on('data', (chunk: Uint8Array) => {
      length += chunk.length
      chunks.push(chunk)
      if (chunks.length > MAX_CHUNKS) chunks = [Buffer.concat(chunks)]
      if (length <= MAX_BODY_BYTES) return
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

/** In one pass over the bytes, before anything is made of them. In UTF-8 no other character has these bytes in it. */
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

/** For calls that take nothing: no body, or an empty object. */
export function assertEmptyBody(body: unknown): void {
  if (body === undefined) return
  const isEmpty = isPlainObject(body) && Object.keys(body).length === 0
  if (!isEmpty) throw new CoordinatorError('invalid_request', 'no body expected', { details: 'send no body, or {}' })
}

/** A caller that hangs up is not a failure of this service. */
function endedEarly() {
  return new CoordinatorError('invalid_request', 'the body ended early', { details: 'the body ended early' })
}

function tooLarge() {
  return new CoordinatorError('body_too_large', 'the body is too large')
}
