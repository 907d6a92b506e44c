import { CoordinatorError } from '../errors.ts'

export const MAX_BODY_BYTES = 131_072

/** Only this essence: what a page may send without a preflight (`text/plain`, forms) never reaches a handler as a body. */
const JSON_TYPE = /^application\/json[ \t]*(?:;.*)?$/i

/**
 * The JSON value of a body; undefined for an empty one, whatever its content type. A body is attacker-controlled in length
 * too, so it is counted as it comes, whatever `Content-Length` says.
 */
export async function readJsonBody(request: Request): Promise<unknown> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > MAX_BODY_BYTES) throw tooLarge()
  // A declared length is what the server reads, and not a byte more; in one piece it costs a fraction of a stream.
  const bytes = declared === null ? await readStream(request) : await readWhole(request)
  if (bytes.length === 0) return undefined
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new CoordinatorError('unsupported_media_type', 'the body must be JSON')
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) as unknown
  } catch {
    // The parser's message quotes the body.
    throw new CoordinatorError('invalid_json', 'the body is not JSON')
  }
}

async function readWhole(request: Request): Promise<Uint8Array> {
  const bytes = new Uint8Array(await request.arrayBuffer().catch(endedEarly))
  if (bytes.length > MAX_BODY_BYTES) throw tooLarge()
  return bytes
}

async function readStream(request: Request): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read().catch(endedEarly)
    if (done) return Buffer.concat(chunks)
    length += value.length
    if (length > MAX_BODY_BYTES) {
      // Not waited for: whoever sends may never let go.
      reader.cancel().catch(() => {})
      throw tooLarge()
    }
    chunks.push(value)
  }
}

/** For calls that take nothing: no body, or an empty object. */
export function assertEmptyBody(body: unknown): void {
  if (body === undefined) return
  const isEmpty = typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0
  if (!isEmpty) throw new CoordinatorError('invalid_request', 'no body expected', { details: 'send no body, or {}' })
}

/** A caller that hangs up is no failure of ours. */
function endedEarly(): never {
  throw new CoordinatorError('invalid_request', 'the body ended early', { details: 'the body ended early' })
}

function tooLarge() {
  return new CoordinatorError('body_too_large', 'the body is too large')
}
