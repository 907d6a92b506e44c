import {
  type AttestResponse,
  assertEnclaveConfig,
  assertEnclaveSettings,
  assertSettingsOf,
  isPlainObject,
  MAX_SIGN_ITEMS,
  type OpenSessionResponse,
  parseJson,
  ServiceError,
  type SignedBatch,
  type SignItemError,
  type SignItemResult,
  type SignItemsResponse,
} from '@countersign/protocol'
import { receiptSchema } from '@countersign/receipt'

/** The enclave's answer is not of the shape that the protocol gives it. */
export class AnswerError extends Error {
  override name = 'AnswerError'
}

const MAX_QUOTE_BYTES = 65_536
/** What a receipt takes. */
const MAX_EVENT_LOG_CHARACTERS = 131_072
const MAX_GRANT_CHARACTERS = 4096

const itemErrors: Record<SignItemError['error'], true> = {
  invalid_request: true,
  invalid_tx_metadata: true,
  message_too_large: true,
  invalid_message: true,
  invalid_typed_data: true,
  authorization_not_allowed: true,
  digest_mismatch: true,
  grant_invalid: true,
  session_expired: true,
  key_binding_mismatch: true,
  quote_unavailable: true,
  entropy_refused: true,
  entropy_used: true,
  entropy_memory_full: true,
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
  const error = isPlainObject(value) ? value.error : undefined
  const code = isPlainObject(error) ? error.code : undefined
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? code : undefined
}

export function parseAttestResponse(value: unknown): AttestResponse {
  const { quote, eventLog, config, settings, tlsKeyHash, bootId } = toMembers(
    value,
    ['quote', 'config', 'settings', 'tlsKeyHash', 'bootId'],
    ['eventLog'],
  )
  assertConfig(config)
  assertSettings(settings, config)
  return {
    quote: toHexUpTo(quote, MAX_QUOTE_BYTES, 'quote'),
    ...toEventLog(eventLog),
    config,
    settings,
    tlsKeyHash: toHex(tlsKeyHash, 32, 'tlsKeyHash'),
    bootId: toHex(bootId, 16, 'bootId'),
  }
}

/** A configuration that no receipt could carry must not sign anything. */
function assertConfig(value: unknown): asserts value is AttestResponse['config'] {
  try {
    assertEnclaveConfig(value)
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    throw new AnswerError('config')
  }
  if (!receiptSchema.shape.signer.shape.config.safeParse(value).success) throw new AnswerError('config')
}

/** Those whose hash the quote covers, in the configuration. */
function assertSettings(value: unknown, config: AttestResponse['config']): asserts value is AttestResponse['settings'] {
  try {
    assertEnclaveSettings(value)
    assertSettingsOf(config, value)
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    throw new AnswerError('settings')
  }
}

export function parseOpenSessionResponse(value: unknown): OpenSessionResponse {
  const { sid, grant, keyId, address, expiresAt } = toMembers(value, ['sid', 'grant', 'keyId', 'address', 'expiresAt'])
  if (typeof grant !== 'string' || grant === '' || grant.length > MAX_GRANT_CHARACTERS) throw new AnswerError('grant')
  if (typeof address !== 'string' || !/^0x[0-9a-f]{40}$/.test(address)) throw new AnswerError('address')
  if (typeof expiresAt !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(expiresAt)) {
    throw new AnswerError('expiresAt')
  }
  return {
    sid: toHex(sid, 32, 'sid'),
    grant,
    keyId: toHex(keyId, 16, 'keyId'),
    address: address as `0x${string}`,
    expiresAt,
  }
}

/**
 * The shape of an answer to so many items. What the statements say is judged where they are held against the items and the
 * quote, one by one.
 */
export function parseSignItemsResponse(value: unknown, itemCount: number): SignItemsResponse {
  const { batches, results } = toMembers(value, ['batches', 'results'])
  if (!Array.isArray(batches) || batches.length > itemCount) throw new AnswerError('batches')
  if (!Array.isArray(results) || results.length !== itemCount) throw new AnswerError('results')
  const parsed = batches.map(toBatch)
  if (new Set(parsed.map(({ bootId }) => bootId)).size > 1) throw new AnswerError('batches of several boots')
  return { batches: parsed, results: results.map((result) => toResult(result, parsed)) }
}

function toBatch(value: unknown): SignedBatch {
  const { bootId, sequence, previous, leaves, quote, eventLog } = toMembers(
    value,
    ['bootId', 'sequence', 'previous', 'leaves', 'quote'],
    ['eventLog'],
  )
  if (!Array.isArray(leaves) || leaves.length > MAX_SIGN_ITEMS) throw new AnswerError('leaves')
  return {
    bootId: toHex(bootId, 16, 'bootId'),
    sequence: toNatural(sequence, Number.MAX_SAFE_INTEGER, 'sequence'),
    previous: toHex(previous, 32, 'previous'),
    leaves: leaves.map((leaf) => toHex(leaf, 32, 'leaves')),
    quote: toHexUpTo(quote, MAX_QUOTE_BYTES, 'quote'),
    ...toEventLog(eventLog),
  }
}

function toResult(value: unknown, batches: readonly SignedBatch[]): SignItemResult {
  if (isPlainObject(value) && 'error' in value) {
    const { error } = toMembers(value, ['error'])
    if (typeof error !== 'string' || !Object.hasOwn(itemErrors, error)) throw new AnswerError('error')
    return { error: error as SignItemError['error'] }
  }
  const { statement, subject, opening, batch, leafIndex } = toMembers(
    value,
    ['statement', 'batch', 'leafIndex'],
    ['subject', 'opening'],
  )
  for (const [name, part] of Object.entries({ statement, subject: subject ?? {}, opening: opening ?? {} })) {
    if (!isPlainObject(part)) throw new AnswerError(name)
  }
  const index = toNatural(batch, batches.length - 1, 'batch')
  const treeSize = batches[index]?.leaves.length ?? 0
  return {
    statement: statement as never,
    ...(subject === undefined ? {} : { subject: subject as never }),
    ...(opening === undefined ? {} : { opening: opening as never }),
    batch: index,
    leafIndex: toNatural(leafIndex, treeSize - 1, 'leafIndex'),
  }
}

/** The members of an object that has all the required ones, perhaps the optional ones, and no other. */
function toMembers<Required extends string, Optional extends string = never>(
  value: unknown,
  required: readonly Required[],
  optional: readonly Optional[] = [],
): Record<Required | Optional, unknown> {
  if (!isPlainObject(value)) throw new AnswerError('not an object')
  const names: readonly string[] = [...required, ...optional]
  for (const name of required) if (!Object.hasOwn(value, name)) throw new AnswerError(`${name} is missing`)
  for (const name of Object.keys(value)) if (!names.includes(name)) throw new AnswerError('a member is unknown')
  return value as Record<Required | Optional, unknown>
}

function toHex(value: unknown, bytes: number, name: string): string {
  if (typeof value !== 'string' || value.length !== 2 * bytes || !/^[0-9a-f]*$/.test(value)) throw new AnswerError(name)
  return value
}

function toHexUpTo(value: unknown, bytes: number, name: string): string {
  const isHex = typeof value === 'string' && value.length <= 2 * bytes && /^(?:[0-9a-f]{2})+$/.test(value)
  if (!isHex) throw new AnswerError(name)
  return value
}

function toNatural(value: unknown, max: number, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > max) throw new AnswerError(name)
  return value
}

function toEventLog(value: unknown): { eventLog?: string } {
  if (value === undefined) return {}
  if (typeof value !== 'string' || value.length > MAX_EVENT_LOG_CHARACTERS) throw new AnswerError('eventLog')
  return { eventLog: value }
}
