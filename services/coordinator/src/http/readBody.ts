import { isBodyTooLarge, isPlainObject, parseStrictJson, readBounded, ServiceError } from '@countersign/protocol'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import { CoordinatorError } from '../errors.ts'

/** Lists, objects and commas together; a signing has ten. So many brackets as fit would keep the thread for tens of milliseconds. */
const MAX_PARTS = 1000
const [QUOTE, BACKSLASH, LIST, OBJECT, COMMA] = [0x22, 0x5c, 0x5b, 0x7b, 0x2c]

/** Only this essence: what a page may send without a preflight (`text/plain`, forms) never reaches a handler as a body. */
const JSON_TYPE = /^application\/json[ \t]*(?:;.*)?$/i

/**
 * The JSON value of a body; undefined for an empty one, whatever its content type. A body is attacker-controlled in length
 * too, so it is counted as it arrives, whatever `Content-Length` says.
 */
export async function readJsonBody(request: Request, limits?: JsonLimits): Promise<unknown> {
  return parseJsonBody(await readBytes(request), request.headers.get('content-type'), limits)
}

type JsonLimits = { maxParts: number }

/** The same of a body that is there. */
export function parseJsonBody(
  bytes: Uint8Array,
  contentType: string | null | undefined,
  { maxParts }: JsonLimits = { maxParts: MAX_PARTS },
): unknown {
  if (bytes.length === 0) return undefined
  if (!JSON_TYPE.test(contentType ?? '')) {
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
    const options = isTwice ? { details: 'a member is given twice' } : {}
    throw new CoordinatorError('invalid_json', 'the body is not JSON', options)
  }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;.*)?$/i

/** The fields of a form. Any page may post one, without a preflight: only for handlers that change nothing by it. */
export async function readFormBody(request: Request): Promise<URLSearchParams> {
  const bytes = await readBytes(request)
  if (!FORM_TYPE.test(request.headers.get('content-type') ?? '')) {
    const details = 'the body must be a form'
    throw new CoordinatorError('unsupported_media_type', details, { details })
  }
  return new URLSearchParams(new TextDecoder().decode(bytes))
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > MAX_BODY_BYTES) throw tooLarge()
  // A declared length is what the server reads, and not a byte more; in one piece it costs a fraction of a stream.
  return declared === null ? readStream(request) : readWhole(request)
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

async function readWhole(request: Request): Promise<Uint8Array> {
  let bytes: Uint8Array
  try {
    bytes = new Uint8Array(await request.arrayBuffer())
  } catch {
    throw endedEarly()
  }
  if (bytes.length > MAX_BODY_BYTES) throw tooLarge()
  return bytes
}

async function readStream(request: Request): Promise<Uint8Array> {
  try {
    return await readBounded(request.body, MAX_BODY_BYTES)
  } catch (error) {
    throw isBodyTooLarge(error) ? tooLarge() : endedEarly()
  }
}

/** For calls that take nothing: no body, or an empty object. */
export function assertEmptyBody(body: unknown): void {
  if (body === undefined) return
  const isEmpty = isPlainObject(body) && Object.keys(body).length === 0
  if (!isEmpty) throw new CoordinatorError('invalid_request', 'no body expected', { details: 'send no body, or {}' })
}

/** A caller that hangs up is not a failure of this service. */
export function endedEarly() {
  return new CoordinatorError('invalid_request', 'the body ended early', { details: 'the body ended early' })
}

function tooLarge() {
  return new CoordinatorError('body_too_large', 'the body is too large')
}
