import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isBodyTooLarge, parseJson, readBounded, ServiceError } from '@countersign/protocol/core'
import { parse, type Schema } from '@countersign/protocol/schema'

/** Why a call to an enclave failed. */
export type PeerErrorCode =
  /** It is not running, or did not respond in time. */
  | 'peer_unreachable'
  /** It refused, with the code in `details`. */
  | 'peer_refused'
  /** The response is malformed, or does not verify. */
  | 'peer_not_accepted'

export class PeerError extends ServiceError<PeerErrorCode> {
  override name = 'PeerError'
}

export type CallPeer = (url: string, path: string, body: unknown, timeoutMs?: number) => Promise<unknown>

/** A quote in hex and some 24 KB of collateral: a response has about 50 KB. */
const MAX_ANSWER_BYTES = 262_144
/** An enclave may process other calls first, and waits for its quote and its collateral. */
export const CALL_TIMEOUT_MS = 60_000

/**
 * Sends JSON to an enclave by POST and reads its JSON. The certificate is not checked, because no authority issues it. Only the quotes
 * authenticate a response, and secrets are always sealed.
 */
export const callPeer: CallPeer = async (url, path, body, timeoutMs = CALL_TIMEOUT_MS) => {
  const text = JSON.stringify(body)
  const { status, answer } = await post(new URL(path, url), { body: text, timeoutMs })
  let value: unknown
  try {
    value = parseJson(answer)
  } catch {
    throw new PeerError('peer_not_accepted', 'the response is not JSON')
  }
  if (status === 200) return value
  const { error } = (value ?? {}) as { error?: { code?: unknown } }
  const code = typeof error?.code === 'string' && /^[a-z_]{1,40}$/.test(error.code) ? error.code : `HTTP ${status}`
  throw new PeerError('peer_refused', 'the enclave refused', { details: code, status })
}

type Outgoing = { body: string; timeoutMs: number }

async function post(url: URL, { body, timeoutMs }: Outgoing): Promise<{ status: number; answer: Uint8Array }> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        method: 'POST',
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      } as const
      const outgoing =
        url.protocol === 'https:'
          ? httpsRequest(url, { ...options, rejectUnauthorized: false }, resolve)
          : httpRequest(url, options, resolve)
      outgoing.on('error', reject)
      outgoing.end(body)
    })
    return { status: response.statusCode ?? 0, answer: await readBounded(response, MAX_ANSWER_BYTES) }
  } catch (cause) {
    if (isBodyTooLarge(cause)) throw new PeerError('peer_not_accepted', 'the response is too large')
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'ABORT_ERR'
    const details = code === 'ABORT_ERR' ? 'not in time' : code
    throw new PeerError('peer_unreachable', 'no response from the enclave', { details, cause })
  }
}

/** Parses a response. Every error is attributed to the enclave. */
export function parseAnswer<Answer>(schema: Schema<Answer>, value: unknown): Answer {
  return parse(schema, value, (details) => {
    return new PeerError('peer_not_accepted', 'not the response of an enclave', { details })
  })
}
