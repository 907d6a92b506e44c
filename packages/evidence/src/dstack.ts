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

/** The socket of dstack's guest agent, and the time limit of one call. */
export type DstackQuoteSourceParameters = { socketPath?: string; timeoutMs?: number }

const SOCKET_PATH = '/var/run/dstack.sock'
const MAX_ANSWER_LENGTH = 1_048_576
const MAX_REASON_LENGTH = 200

/** Advice if the socket is missing or refuses connections, by errno. */
const UNREACHABLE: Readonly<Record<string, string>> = {
  ENOENT: 'mount /var/run/dstack.sock into this container',
  EACCES: "grant this process access to the agent's socket",
}

/**
 * TDX quotes, with their event log, from dstack's guest agent: `GetQuote` of the interface that dstack froze at 0.5.11 (Dstack-TEE/dstack
 * `dstack/guest-agent/rpc/proto/agent_rpc.proto`), with the same bytes as `report_data`, unhashed.
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
  /** The name of the key within this application. */
  path: string
}

/**
 * A key that dstack derives only for this application: `GetKey`. The same path gives the same key on every machine that runs the application.
 * There is no proof of this to others.
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
      // One connection per call, because a pooled one could close unnoticed while the signer is idle.
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
    // Node's HTTP parser has these error codes.
    if (errno.startsWith('HPE_')) throw malformed(method, 'not HTTP', error)
    const advice = UNREACHABLE[errno]
    throw new EvidenceError('agent_unreachable', 'no response from the guest agent', {
      details: advice ? `${errno}: ${advice}` : errno,
      cause: error,
    })
  }
}

/** `{ quote, event_log, report_data, vm_config }`. The last two repeat unproven what the quote proves. */
function parseQuoteAnswer(answer: Record<string, unknown>): Quote {
  if (typeof answer.quote !== 'string') throw malformed('GetQuote', 'no quote')
  if (typeof answer.event_log !== 'string') throw malformed('GetQuote', 'no event_log')
  return { quote: parseHex('GetQuote', answer.quote), eventLog: answer.event_log }
}

/**
 * The agent writes lower-case hex without a prefix, and dstack's own clients decode only that (`decode_quote` in `sdk/python`). Earlier
 * releases of its RPC library added `0x`. Accepting both is safe, because only the bytes are used.
 */
function parseHex(method: Method, text: string): Uint8Array<ArrayBuffer> {
  try {
    return fromHex(text.startsWith('0x') ? text.slice(2) : text)
  } catch {
    // Without the cause, which could contain a key.
    throw malformed(method, 'not hex')
  }
}

function malformed(method: Method, details: string, cause?: unknown) {
  return new EvidenceError('agent_answer_malformed', `not a response to ${method}`, { details, cause })
}

/** The agent reports errors in `{ error }`, with status 400 for unknown methods and failed ones alike. */
function refused(method: Method, { status, body }: Answer) {
  let reason = ''
  try {
    const answer = parseJson(body)
    if (isPlainObject(answer) && typeof answer.error === 'string') {
      reason = `: ${answer.error.slice(0, MAX_REASON_LENGTH)}`
    }
  } catch {
    // A page that is not from the agent. Its status is enough.
  }
  return new EvidenceError('agent_refused', `the guest agent refused ${method}`, { details: `HTTP ${status}${reason}` })
}
