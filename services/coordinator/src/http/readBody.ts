import { CoordinatorError } from '../errors.ts'

export const MAX_BODY_BYTES = 131_072

/** Only this essence: what a page may send without a preflight (`text/plain`, forms) never reaches a handler as a body. */
const JSON_TYPE = /^application\/json[ \t]*(?:;.*)?$/i

/**
 * The JSON value of a body; undefined for an empty one, whatever its content type. A body is attacker-controlled in length
 * too, so it is counted as it comes, whatever `Content-Length` says.
 */
export async function readJsonBody(request: Request): Promise<unknown> {
  const declared = Number(request.headers.get('content-length') ?? '0')
  if (declared > MAX_BODY_BYTES) throw tooLarge()
  const bytes = await readBytes(request)
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

async function readBytes(request: Request): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    // A caller that hangs up is no failure of ours.
    const { done, value } = await reader.read().catch(() => {
      throw new CoordinatorError('invalid_request', 'the body ended early', { details: 'the body ended early' })
    })
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

function tooLarge() {
  return new CoordinatorError('body_too_large', 'the body is too large')
}
