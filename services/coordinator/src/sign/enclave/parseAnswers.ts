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

/** The enclave's answer doesn't have the shape that the protocol requires. */
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

/** The code of an error body, or undefined if the body has another shape. */
export function parseErrorCode(value: unknown): string | undefined {
  const code = (value as { error?: { code?: unknown } | null } | null)?.error?.code
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? code : undefined
}

/** Checks only the shape. Callers compare the content with the request and the quote. */
export function parseAnswer<Answer>(schema: Schema<Answer>, value: unknown): Answer {
  return parse(schema, value, (details) => new AnswerError(details))
}

export function parseAttestResponse(value: unknown): AttestResponse {
  const answer = parseAnswer(attestResponse, value)
  const { config, settings, logs } = answer
  check('config', () => assertEnclaveConfig(config))
  // An enclave must not sign if its configuration doesn't fit into a receipt.
  if (!receiptSchema.shape.signer.shape.config.safeParse(config).success) throw new AnswerError('config')
  check('settings', () => assertSettingsOf(config, settings))
  assertLogs(logs, settings)
  return answer
}

/** `logs` is present exactly if the settings have a log. The settings contain the enclave's own origins, and each origin has its key. */
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

/** The answer must have one result per item. */
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

/** The answer must have one statement, or null, per leaf. */
export function parseReleaseResponse(value: unknown, leafCount: number): ReleaseResponse {
  const answer = parseAnswer(releaseResponse, value)
  if (answer.statements.length !== leafCount) throw new AnswerError('statements')
  return answer
}

/** The entries must end at the checkpoint's size. The log's writer checks that they continue the stored log. */
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
