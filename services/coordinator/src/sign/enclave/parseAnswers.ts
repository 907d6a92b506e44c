import { parseCheckpoint, parseNote, parseVkey } from '@countersign/log'
import {
  type AppendedEntries,
  type AttestResponse,
  assertEnclaveConfig,
  assertSettingsOf,
  attestResponse,
  type LoggedItemsResponse,
  type LogResponse,
  loggedItemsResponse,
  logResponse,
  parseJson,
  type ReleaseResponse,
  releaseResponse,
  ServiceError,
  type SignItemsResponse,
  signItemsResponse,
} from '@countersign/protocol'
import { parse, type Schema } from '@countersign/protocol/schema'
import { receiptSchema } from '@countersign/receipt'

/** The enclave's answer is not of the shape that the protocol gives it. */
export class AnswerError extends Error {
  override name = 'AnswerError'
}

export function parseBody(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes)
  } catch {
    throw new AnswerError('not JSON')
  }
}

/** The code of a refusal, if it is one of the enclave's. */
export function parseErrorCode(value: unknown): string | undefined {
  const code = (value as { error?: { code?: unknown } | null } | null)?.error?.code
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? code : undefined
}

/** What the answer says is judged where it is held against the request and the quote. */
export function parseAnswer<Answer>(schema: Schema<Answer>, value: unknown): Answer {
  return parse(schema, value, (details) => new AnswerError(details))
}

export function parseAttestResponse(value: unknown): AttestResponse {
  const answer = parseAnswer(attestResponse, value)
  const { config, settings, logs } = answer
  check('config', () => assertEnclaveConfig(config))
  // A configuration that no receipt could carry must not sign anything.
  if (!receiptSchema.shape.signer.shape.config.safeParse(config).success) throw new AnswerError('config')
  check('settings', () => assertSettingsOf(config, settings))
  assertLogs(logs, settings)
  return answer
}

/** There where the settings have a log, and nowhere else: its own origins are among them, and each of them has its key. */
function assertLogs(logs: AttestResponse['logs'], { log }: AttestResponse['settings']) {
  if (log === null && logs === undefined) return
  if (log === null || logs === undefined) throw new AnswerError('logs')
  const { own, keys } = logs
  const isOwn =
    own.length > 0 && new Set(own).size === own.length && own.every((origin) => log.origins.includes(origin))
  if (!isOwn || keys.length !== log.origins.length) throw new AnswerError('logs')
  for (const [index, key] of keys.entries()) {
    const { name, type } = check('logs', () => parseVkey(key))
    if (name !== log.origins[index] || type !== 'ed25519') throw new AnswerError('logs')
  }
}

/** The answer to so many items, one result for each. */
export function parseSignItemsResponse(value: unknown, itemCount: number): SignItemsResponse | LoggedItemsResponse {
  const isLogged = typeof value === 'object' && value !== null && 'log' in value
  const answer = isLogged ? parseAnswer(loggedItemsResponse, value) : parseAnswer(signItemsResponse, value)
  const { batches, results } = answer
  if (batches.length > itemCount) throw new AnswerError('batches')
  if (results.length !== itemCount) throw new AnswerError('results')
  if (new Set(batches.map(({ bootId }) => bootId)).size > 1) throw new AnswerError('batches of several boots')
  for (const result of results) {
    if ('error' in result) continue
    if (!(result.leafIndex < (batches[result.batch]?.leaves.length ?? 0))) throw new AnswerError('leafIndex')
  }
  if (!('log' in answer)) return answer
  if ((answer.log === null) !== (batches.length === 0)) throw new AnswerError('log')
  if (answer.log !== null) assertAppended(answer.log)
  return answer
}

export function parseLogResponse(value: unknown): LogResponse {
  const answer = parseAnswer(logResponse, value)
  if (answer.log !== null) assertAppended(answer.log)
  return answer
}

/** The answer to so many leaves. */
export function parseReleaseResponse(value: unknown, leafCount: number): ReleaseResponse {
  const answer = parseAnswer(releaseResponse, value)
  if (answer.statements.length !== leafCount) throw new AnswerError('statements')
  return answer
}

/** The entries end where the checkpoint's tree does. Whether the log is what it should be is judged where it is kept. */
function assertAppended({ origin, from, entries, checkpoint }: AppendedEntries) {
  const signed = check('checkpoint', () => parseCheckpoint(parseNote(checkpoint).text))
  if (origin !== signed.origin) throw new AnswerError('origin')
  if (signed.size !== from + entries.length) throw new AnswerError('entries')
}

function check<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    throw error instanceof ServiceError ? new AnswerError(name) : error
  }
}
