import {
  type ApprovalReason,
  type AttestResponse,
  assertEnclaveConfig,
  assertEnclaveSettings,
  assertSettingsOf,
  type Hex,
  isLowerPrefixedHex,
  type LoggedItemsResponse,
  MAX_SIGN_ITEMS,
  type OpenSessionResponse,
  type Placed,
  type PolicyRefusal,
  parseJson,
  type RequestReason,
  type RuleReason,
  ServiceError,
  type SignedBatch,
  type SignItemError,
  type SignItemResult,
  type SignItemsResponse,
  type VaultResponse,
} from '@countersign/protocol'
import { receiptSchema } from '@countersign/receipt'
import { AnswerError, isObject, toHex, toHexUpTo, toMembers, toNatural, toSignedStatement } from './answerMembers.ts'
import { parseAppended, parseLogs } from './parseLogAnswers.ts'

const MAX_QUOTE_BYTES = 65_536
/** What a receipt takes. */
const MAX_EVENT_LOG_CHARACTERS = 131_072
const MAX_GRANT_CHARACTERS = 4096

/** Those that say no more than their code. */
const itemErrors: Record<PlainItemError['error'], true> = {
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
  policy_unknown: true,
  policy_not_supported: true,
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
  const error = isObject(value) ? value.error : undefined
  const code = isObject(error) ? error.code : undefined
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? code : undefined
}

export function parseAttestResponse(value: unknown): AttestResponse {
  const { quote, eventLog, config, settings, tlsKeyHash, bootId, commitment, logs } = toMembers(
    value,
    ['quote', 'config', 'settings', 'tlsKeyHash', 'bootId'],
    ['eventLog', 'commitment', 'logs'],
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
    ...(commitment === undefined ? {} : { commitment: toHex(commitment, 32, 'commitment') }),
    ...parseLogs(logs, settings),
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
  if (typeof expiresAt !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(expiresAt)) {
    throw new AnswerError('expiresAt')
  }
  return {
    sid: toHex(sid, 32, 'sid'),
    grant,
    keyId: toHex(keyId, 16, 'keyId'),
    address: toWalletAddress(address),
    expiresAt,
  }
}

export function parseVaultResponse(value: unknown): VaultResponse {
  const { keyId, address, publicKey, policy } = toMembers(value, ['keyId', 'address', 'publicKey', 'policy'])
  return {
    keyId: toHex(keyId, 16, 'keyId'),
    address: toWalletAddress(address),
    publicKey: toHex(publicKey, 65, 'publicKey'),
    policy: toHex(policy, 32, 'policy'),
  }
}

/**
 * The shape of an answer to so many items. What the statements say is judged where they are held against the items and the
 * quote, one by one.
 */
export function parseSignItemsResponse(value: unknown, itemCount: number): SignItemsResponse | LoggedItemsResponse {
  const { batches, results, log } = toMembers(value, ['batches', 'results'], ['log'])
  if (!Array.isArray(batches) || batches.length > itemCount) throw new AnswerError('batches')
  if (!Array.isArray(results) || results.length !== itemCount) throw new AnswerError('results')
  const parsed = batches.map(toBatch)
  if (new Set(parsed.map(({ bootId }) => bootId)).size > 1) throw new AnswerError('batches of several boots')
  if (log === undefined) return { batches: parsed, results: results.map((result) => toResult(result, parsed)) }
  if ((log === null) !== (parsed.length === 0)) throw new AnswerError('log')
  return {
    batches: parsed,
    results: results.map((result) => toLoggedResult(result, parsed)),
    log: log === null ? null : parseAppended(log),
  }
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
  if (isObject(value) && 'error' in value) return toItemError(value)
  const members = toMembers(value, ['statement', 'batch', 'leafIndex'], ['subject', 'opening'])
  return { ...toSignedStatement(members), ...toPlaced(members, batches) }
}

/** Of an enclave with a log: where the statement is, and nothing of it. */
function toLoggedResult(value: unknown, batches: readonly SignedBatch[]): SignItemError | Placed {
  if (isObject(value) && 'error' in value) return toItemError(value)
  return toPlaced(toMembers(value, ['batch', 'leafIndex']), batches)
}

function toPlaced({ batch, leafIndex }: Record<keyof Placed, unknown>, batches: readonly SignedBatch[]): Placed {
  const index = toNatural(batch, batches.length - 1, 'batch')
  const treeSize = batches[index]?.leaves.length ?? 0
  return { batch: index, leafIndex: toNatural(leafIndex, treeSize - 1, 'leafIndex') }
}

type PlainItemError = Exclude<SignItemError, { details: unknown } | { missing: unknown } | { reason: unknown }>

const approvalReasons: Record<ApprovalReason, true> = {
  approver_unknown: true,
  approval_expired: true,
  approval_too_long: true,
  client_data_malformed: true,
  client_data_type: true,
  challenge_mismatch: true,
  origin_not_allowed: true,
  cross_origin: true,
  authenticator_data_malformed: true,
  rp_id_mismatch: true,
  user_not_present: true,
  user_not_verified: true,
  authenticator_data_extended: true,
  backup_state_impossible: true,
  approval_signature_invalid: true,
}

function toItemError(value: Record<string, unknown>): SignItemError {
  if (value.error === 'policy_refused') {
    const { details } = toMembers(value, ['error', 'details'])
    return { error: value.error, details: toPolicyRefusal(details) }
  }
  if (value.error === 'approvals_missing') {
    const { missing } = toMembers(value, ['error', 'missing'])
    return { error: value.error, missing: toNatural(missing, Number.MAX_SAFE_INTEGER, 'missing') }
  }
  if (value.error === 'approval_invalid') {
    const { index, reason } = toMembers(value, ['error', 'index', 'reason'])
    if (typeof reason !== 'string' || !Object.hasOwn(approvalReasons, reason)) throw new AnswerError('reason')
    const at = toNatural(index, Number.MAX_SAFE_INTEGER, 'index')
    return { error: value.error, index: at, reason: reason as ApprovalReason }
  }
  const { error } = toMembers(value, ['error'])
  if (typeof error !== 'string' || !Object.hasOwn(itemErrors, error)) throw new AnswerError('error')
  return { error: error as PlainItemError['error'] }
}

const requestReasons: Record<RequestReason, true> = {
  request_malformed: true,
  sample_missing: true,
  sample_source_not_allowed: true,
  nonce_not_due: true,
}

const ruleReasons: Record<RuleReason['code'], 'alone' | 'of a word'> = {
  kind_not_allowed: 'alone',
  chain_not_allowed: 'alone',
  recipient_not_allowed: 'alone',
  value_above_max: 'alone',
  fee_above_max: 'alone',
  data_not_empty: 'alone',
  data_length: 'alone',
  selector_not_allowed: 'alone',
  domain_not_allowed: 'alone',
  domain_has_salt: 'alone',
  primary_type_not_allowed: 'alone',
  argument_undecodable: 'of a word',
  argument_not_allowed: 'of a word',
  argument_above_max: 'of a word',
}

/** It becomes sentences for people, so each part is one that is known. */
function toPolicyRefusal(value: unknown): PolicyRefusal {
  const { reasons, rules, nearest } = toMembers(value, ['reasons', 'rules', 'nearest'])
  const isKnown = (reason: unknown) => typeof reason === 'string' && Object.hasOwn(requestReasons, reason)
  if (!Array.isArray(reasons) || !reasons.every(isKnown)) throw new AnswerError('reasons')
  if (!Array.isArray(rules)) throw new AnswerError('rules')
  return {
    reasons: reasons as RequestReason[],
    rules: rules.map((item) => {
      const { rule, reasons } = toMembers(item, ['rule', 'reasons'])
      if (!Array.isArray(reasons)) throw new AnswerError('rules')
      return { rule: toNatural(rule, Number.MAX_SAFE_INTEGER, 'rule'), reasons: reasons.map(toRuleReason) }
    }),
    nearest: nearest === null ? null : toNatural(nearest, Number.MAX_SAFE_INTEGER, 'nearest'),
  }
}

function toRuleReason(value: unknown): RuleReason {
  const { code, at } = toMembers(value, ['code'], ['at'])
  if (typeof code !== 'string' || !Object.hasOwn(ruleReasons, code)) throw new AnswerError('rules')
  const isOfWord = ruleReasons[code as RuleReason['code']] === 'of a word'
  if (isOfWord !== (at !== undefined)) throw new AnswerError('rules')
  return (isOfWord ? { code, at: toNatural(at, Number.MAX_SAFE_INTEGER, 'at') } : { code }) as RuleReason
}

function toWalletAddress(value: unknown): Hex {
  if (!isLowerPrefixedHex(value, 20)) throw new AnswerError('address')
  return value
}

function toEventLog(value: unknown): { eventLog?: string } {
  if (value === undefined) return {}
  if (typeof value !== 'string' || value.length > MAX_EVENT_LOG_CHARACTERS) throw new AnswerError('eventLog')
  return { eventLog: value }
}
