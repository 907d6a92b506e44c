import { request as httpRequest, type IncomingMessage } from 'node:http'
import {
  fromHex,
  isBodyTooLarge,
  isPlainObject,
  parseJson,
  readBounded,
  toHex,
  withinTimeLimit,
} from '@countersign/protocol/core'
import { EvidenceError, evidenceTimeout, toErrno } from './errors.ts'
import type { Quote, QuoteSource } from './ports.ts'
import { createQuoteSource } from './source.ts'

/** Where dstack's guest agent listens, and how long one call may take. */
export type DstackQuoteSourceParameters = { socketPath?: string; timeoutMs?: number }

const SOCKET_PATH = '/var/run/dstack.sock'
const MAX_ANSWER_LENGTH = 1_048_576
const MAX_REASON_LENGTH = 200

/** What the operating system says of a socket that is missing or refuses, by errno. */
const UNREACHABLE: Readonly<Record<string, string>> = {
  ENOENT: 'mount /var/run/dstack.sock into this container',
  EACCES: "grant this process access to the agent's socket",
}

/**
 * TDX quotes, with their event log, from the guest agent of dstack: `GetQuote` of the surface that dstack froze at 0.5.11
 * (Dstack-TEE/dstack `dstack/guest-agent/rpc/proto/agent_rpc.proto`), the same bytes in as `report_data`, unhashed.
 *
 * @example
 * const { quote, eventLog } = await createDstackQuoteSource().getQuote(reportData)
 */
export function createDstackQuoteSource(parameters: DstackQuoteSourceParameters = {}): QuoteSource {
  const { socketPath = SOCKET_PATH, timeoutMs } = parameters
  return createQuoteSource({
    mode: 'hardware',
    timeoutMs,
    async ask(reportData, signal) {
      const call = { socketPath, method: 'GetQuote', body: { report_data: toHex(reportData) } } as const
      return parseQuoteAnswer(await post(call, signal))
    },
  })
}

export type GetDstackKeyParameters = DstackQuoteSourceParameters & {
  /** Names the key among those of this application. */
  path: string
}

/**
 * A key that dstack derives for this application only: `GetKey`. The same path gives the same key on every machine that
 * runs the application; the agent vouches for it to nobody else.
 */
export async function getDstackKey(parameters: GetDstackKeyParameters): Promise<Uint8Array<ArrayBuffer>> {
  const { socketPath = SOCKET_PATH, timeoutMs = 30_000, path } = parameters
  const getKey = async (signal: AbortSignal) => {
    const answer = await post({ socketPath, method: 'GetKey', body: { path, purpose: '' } }, signal)
    if (typeof answer.key !== 'string') throw malformed('GetKey', 'no key')
    return parseHex('GetKey', answer.key)
  }
  return withinTimeLimit(timeoutMs, getKey, { createError: () => evidenceTimeout(timeoutMs) })
}

type Method = 'GetQuote' | 'GetKey'
type Call = { socketPath: string; method: Method; body: object }
type Answer = { status: number; body: Uint8Array }

/** Calls the agent and reads its JSON. */
async function post({ socketPath, method, body }: Call, signal: AbortSignal): Promise<Record<string, unknown>> {
  const answer = await request({ socketPath, method, body: JSON.stringify(body) }, signal)
  if (answer.status !== 200) throw refused(method, answer)
  let value: unknown
  try {
    value = parseJson(answer.body)
  } catch {
    throw malformed(method, 'not JSON')
  }
  if (!isPlainObject(value)) throw malformed(method, 'not an object')
  return value
}

async function request(
  { socketPath, method, body }: { socketPath: string; method: Method; body: string },
  signal: AbortSignal,
): Promise<Answer> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { host: 'dstack', 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      // One connection for each call: a pooled one could die unseen while the signer is idle.
      const options = { socketPath, path: `/${method}`, method: 'POST', agent: false, headers, signal }
      const outgoing = httpRequest(options, resolve)
      outgoing.on('error', reject)
      outgoing.end(body)
    })
    return { status: response.statusCode ?? 0, body: await readBounded(response, MAX_ANSWER_LENGTH) }
  } catch (error) {
    signal.throwIfAborted()
    if (isBodyTooLarge(error)) {
      throw new EvidenceError('evidence_too_large', 'more evidence than a guest gives', { details: method })
    }
    const errno = toErrno(error)
    // Node's HTTP parser names its errors so.
    if (errno.startsWith('HPE_')) throw malformed(method, 'not HTTP', error)
    const advice = UNREACHABLE[errno]
    throw new EvidenceError('agent_unreachable', 'no answer from the guest agent', {
      details: advice ? `${errno}: ${advice}` : errno,
      cause: error,
    })
  }
}

/** `{ quote, event_log, report_data, vm_config }`; the latter two are the agent's word for what the quote itself proves. */
function parseQuoteAnswer(answer: Record<string, unknown>): Quote {
  if (typeof answer.quote !== 'string') throw malformed('GetQuote', 'no quote')
  if (typeof answer.event_log !== 'string') throw malformed('GetQuote', 'no event_log')
  return { quote: parseHex('GetQuote', answer.quote), eventLog: answer.event_log }
}

/**
 * The agent writes lower-case hex without a prefix: dstack's own clients decode it as it stands (`decode_quote` in
 * `sdk/python`). Earlier releases of its RPC library put `0x` before it. Only the bytes are kept, so both may pass.
 */
function parseHex(method: Method, text: string): Uint8Array<ArrayBuffer> {
  try {
    return fromHex(text.startsWith('0x') ? text.slice(2) : text)
  } catch {
    // The cause is left out: it could hold a key.
    throw malformed(method, 'not hex')
  }
}

function malformed(method: Method, details: string, cause?: unknown) {
  return new EvidenceError('agent_answer_malformed', `not an answer to ${method}`, { details, cause })
}

/** The agent says why in `{ error }`, with status 400 for an unknown method and for a failed one alike. */
function refused(method: Method, { status, body }: Answer) {
  let reason = ''
  try {
    const answer = parseJson(body)
    if (isPlainObject(answer) && typeof answer.error === 'string') {
      reason = `: ${answer.error.slice(0, MAX_REASON_LENGTH)}`
    }
  } catch {
    // A page from something that is not the agent; its status says enough.
  }
  return new EvidenceError('agent_refused', `the guest agent refused ${method}`, { details: `HTTP ${status}${reason}` })
}
