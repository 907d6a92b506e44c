import { type IncomingMessage, request } from 'node:http'
import { fromHex, toHex } from '@countersign/protocol'
import { EvidenceError } from './errors.ts'
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
      const answer = await post(socketPath, JSON.stringify({ report_data: toHex(reportData) }), signal)
      if (answer.status !== 200) throw refused(answer)
      return parseAnswer(answer.body)
    },
  })
}

type Answer = { status: number; body: Uint8Array }

async function post(socketPath: string, body: string, signal: AbortSignal): Promise<Answer> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { host: 'dstack', 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      // One connection for each call: a pooled one could die unseen while the signer is idle.
      const outgoing = request(
        { socketPath, path: '/GetQuote', method: 'POST', agent: false, headers, signal },
        resolve,
      )
      outgoing.on('error', reject)
      outgoing.end(body)
    })
    return { status: response.statusCode ?? 0, body: await readBody(response) }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof EvidenceError) throw error
    const errno = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    // Node's HTTP parser names its errors so.
    if (errno.startsWith('HPE_')) throw malformed('not HTTP', error)
    const advice = UNREACHABLE[errno]
    throw new EvidenceError('agent_unreachable', 'no answer from the guest agent', {
      details: advice ? `${errno}: ${advice}` : errno,
      cause: error,
    })
  }
}

/** Leaving the loop by an error closes the connection, so an endless answer ends here. */
async function readBody(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    if (length > MAX_ANSWER_LENGTH) {
      throw new EvidenceError('evidence_too_large', 'more evidence than a guest gives', { details: 'GetQuote' })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** `{ quote, event_log, report_data, vm_config }`; the latter two are the agent's word for what the quote itself proves. */
function parseAnswer(body: Uint8Array): Quote {
  const answer = parseJson(body)
  if (typeof answer !== 'object' || answer === null) throw malformed('not an object')
  if (!('quote' in answer) || typeof answer.quote !== 'string') throw malformed('no quote')
  if (!('event_log' in answer) || typeof answer.event_log !== 'string') throw malformed('no event_log')
  return { quote: parseHex(answer.quote), eventLog: answer.event_log }
}

/**
 * The agent writes lower-case hex without a prefix: dstack's own clients decode it as it stands (`decode_quote` in
 * `sdk/python`). Earlier releases of its RPC library put `0x` before it. Only the bytes are kept, so both may pass.
 */
function parseHex(text: string): Uint8Array {
  try {
    return fromHex(text.startsWith('0x') ? text.slice(2) : text)
  } catch (error) {
    throw malformed('quote is not hex', error)
  }
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (error) {
    throw malformed('not JSON', error)
  }
}

function malformed(details: string, cause?: unknown) {
  return new EvidenceError('agent_answer_malformed', 'not an answer to GetQuote', { details, cause })
}

/** The agent says why in `{ error }`, with status 400 for an unknown method and for a failed one alike. */
function refused({ status, body }: Answer) {
  let reason = ''
  try {
    const answer = parseJson(body)
    if (typeof answer === 'object' && answer !== null && 'error' in answer && typeof answer.error === 'string') {
      reason = `: ${answer.error.slice(0, MAX_REASON_LENGTH)}`
    }
  } catch {
    // A page from something that is not the agent; its status says enough.
  }
  return new EvidenceError('agent_refused', 'the guest agent gave no quote', { details: `HTTP ${status}${reason}` })
}
