import { MAX_NOTE_SIGNATURES } from '@countersign/log/core'
import { assertApprovals, MAX_POLICY_BYTES, VaultPolicyError } from '@countersign/policy/core'
import {
  type AttestRequest,
  type CallerAttestation,
  isDrandWitness,
  isEntropyWitness,
  isHex,
  isLowerPrefixedHex,
  isNatural,
  type LogRequest,
  MAX_SIGN_ITEMS,
  type OpenSessionRequest,
  parseJson,
  type ReleaseRequest,
  readMembers,
  type SignItem,
  type VaultRequest,
} from '@countersign/protocol/core'
import { EnclaveError } from './errors.ts'

/** Reads the JSON body of a call. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return parseJson(body)
  } catch {
    throw new EnclaveError('invalid_json', 'the body is not JSON')
  }
}

export function parseAttestRequest(value: unknown): AttestRequest {
  const { nonce, caller } = toMembers(value, ['nonce'], ['caller'])
  if (!isHex(nonce, 32)) throw invalidRequest('nonce')
  return caller === undefined ? { nonce } : { nonce, caller: parseCaller(caller) }
}

function parseCaller(value: unknown): CallerAttestation {
  const required = ['report', 'certificates', 'configHash'] as const
  const { report, certificates, configHash, revocations } = toMembers(value, required, ['revocations'])
  const { ek, ask, ark } = toMembers(certificates, ['ek', 'ask', 'ark'])
  if (!isHex(report) || !isHex(ek) || !isHex(ask) || !isHex(ark) || !isHex(configHash, 32))
    throw invalidRequest('caller')
  const caller = { report, certificates: { ek, ask, ark }, configHash }
  if (revocations === undefined) return caller
  if (!isHex(revocations)) throw invalidRequest('caller')
  return { ...caller, revocations }
}

export function parseOpenSessionRequest(value: unknown): OpenSessionRequest {
  const { idToken, loginSecret } = toMembers(value, ['idToken', 'loginSecret'])
  if (typeof idToken !== 'string') throw invalidRequest('idToken')
  if (!isHex(loginSecret, 32)) throw invalidRequest('loginSecret')
  return { idToken, loginSecret }
}

export function parseVaultRequest(value: unknown): VaultRequest {
  const { sid, grant, policy, isKnown } = toMembers(value, ['sid', 'grant', 'policy'], ['isKnown'])
  if (!isHex(sid, 32)) throw invalidRequest('sid')
  if (typeof grant !== 'string') throw invalidRequest('grant')
  // Whether it is a policy has an error of its own.
  if (typeof policy !== 'string') throw invalidRequest('policy')
  if (isKnown === undefined) return { sid, grant, policy }
  if (isKnown !== true) throw invalidRequest('isKnown')
  return { sid, grant, policy, isKnown }
}

/** What fits the release of some thousands at once. */
const MAX_LEAVES = 4_096
/** One for each bit of a size. */
const MAX_FRONTIER = 53

export function parseLogRequest(value: unknown): LogRequest {
  const { start, from } = toMembers(value, [], ['start', 'from'])
  if (from !== undefined && !isNatural(from)) throw invalidRequest('from')
  const rest = from === undefined ? {} : { from }
  if (start === undefined) return rest
  const { origin, checkpoint, hashes } = toMembers(start, ['origin', 'checkpoint', 'hashes'])
  if (typeof origin !== 'string') throw invalidRequest('origin')
  if (checkpoint !== null && typeof checkpoint !== 'string') throw invalidRequest('checkpoint')
  if (!isHashes(hashes, MAX_FRONTIER)) throw invalidRequest('hashes')
  return { ...rest, start: { origin, checkpoint, hashes } }
}

export function parseReleaseRequest(value: unknown): ReleaseRequest {
  const optional = ['checkpoint', 'cosignatures', 'leaves', 'drop', 'acknowledge'] as const
  const { bootId, checkpoint, cosignatures, ...lists } = toMembers(value, ['bootId'], optional)
  if (!isHex(bootId, 16)) throw invalidRequest('bootId')
  const named: Pick<ReleaseRequest, 'leaves' | 'drop' | 'acknowledge'> = {}
  for (const name of ['leaves', 'drop', 'acknowledge'] as const) {
    const leaves = lists[name]
    if (leaves === undefined) continue
    if (!isHashes(leaves, MAX_LEAVES)) throw invalidRequest(name)
    named[name] = leaves
  }
  // Each is answered whole, and what is held of it counted once.
  if (new Set(named.leaves).size < (named.leaves?.length ?? 0)) throw invalidRequest('leaves has one twice')
  if (checkpoint === undefined && cosignatures === undefined) return { bootId, ...named }
  if (typeof checkpoint !== 'string') throw invalidRequest('checkpoint')
  if (!isTexts(cosignatures) || cosignatures.length >= MAX_NOTE_SIGNATURES) throw invalidRequest('cosignatures')
  return { bootId, checkpoint, cosignatures, ...named }
}

function isHashes(value: unknown, most: number): value is string[] {
  return Array.isArray(value) && value.length <= most && value.every((one) => isHex(one, 32))
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/** Items of the wrong shape are undefined: one of them must not fail the others. */
export type ParsedSignItems = { items: (SignItem | undefined)[]; policies: readonly string[] | undefined }

export function parseSignItemsRequest(value: unknown): ParsedSignItems {
  const { items, policies } = toMembers(value, ['items'], ['policies'])
  if (!Array.isArray(items) || items.length < 1 || items.length > MAX_SIGN_ITEMS) {
    throw invalidRequest(`items is not a list of 1 to ${MAX_SIGN_ITEMS}`)
  }
  if (policies !== undefined && !(isPolicyTexts(policies) && policies.length <= items.length)) {
    throw invalidRequest('policies is not a list of texts, at most as many as items')
  }
  return { items: items.map(toSignItem), policies }
}

function isPolicyTexts(value: unknown): value is string[] {
  return isTexts(value) && value.every((text) => Buffer.byteLength(text) <= MAX_POLICY_BYTES)
}

/** Whose key an item is for, and with which sample. */
const COMMON_MEMBERS = ['sid', 'grant', 'keyId', 'witness', 'kind']

/** All that each kind has. */
const ITEM_MEMBERS = {
  transaction: [...COMMON_MEMBERS, 'digest', 'txMetadata', 'statementVersion'],
  authorization: [...COMMON_MEMBERS, 'authorization'],
  message: [...COMMON_MEMBERS, 'content'],
  'typed-data': [...COMMON_MEMBERS, 'content'],
  address: COMMON_MEMBERS,
} satisfies Record<SignItem['kind'], readonly string[]>

/** Item, content, and typed data that is nested 16 deep. */
const MAX_ITEM_DEPTH = 24

/**
 * What is to be signed has its own checks, with their own errors, where it is rebuilt. A message alone is put together here, since
 * only its one member is hashed.
 */
function toSignItem(value: unknown): SignItem | undefined {
  try {
    const kind = (value as { kind?: unknown } | null)?.kind
    if (!isKind(kind) || !isWithinDepth(value, MAX_ITEM_DEPTH)) return undefined
    const item = toMembers<string, string>(value, ITEM_MEMBERS[kind], ['vault'])
    const isGranted = isHex(item.sid, 32) && typeof item.grant === 'string' && isHex(item.keyId, 16)
    if (!isGranted || !(isEntropyWitness(item.witness) || isDrandWitness(item.witness))) return undefined
    if (kind === 'transaction' && !isTransactionItem(item)) return undefined
    if (kind === 'message') toMembers(item.content, ['message'])
    if (item.vault !== undefined && !isVaultUse(item)) return undefined
    return item as SignItem
  } catch (error) {
    if (error instanceof EnclaveError || error instanceof VaultPolicyError) return undefined
    throw error
  }
}

/** Statements of version 1 have no place for a policy, and for an address there is nothing to approve. */
function isVaultUse({ kind, statementVersion, vault }: Record<string, unknown>): boolean {
  const { policy, approvals } = toMembers(vault, ['policy'], ['approvals'])
  if (approvals !== undefined) assertApprovals(approvals)
  return isHex(policy, 32) && statementVersion !== 1 && !(kind === 'address' && approvals !== undefined)
}

/** Messages to the key worker are copied by recursion: a value nested some thousands deep would end the process. */
function isWithinDepth(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth === 0) return false
  // Parsed JSON inherits nothing that this would visit.
  for (const name in value) if (!isWithinDepth(value[name as keyof typeof value], depth - 1)) return false
  return true
}

function isKind(value: unknown): value is SignItem['kind'] {
  return typeof value === 'string' && Object.hasOwn(ITEM_MEMBERS, value)
}

function isTransactionItem({ digest, statementVersion }: Record<string, unknown>): boolean {
  const isVersion = statementVersion === 1 || statementVersion === 2
  return isVersion && isLowerPrefixedHex(digest, 32)
}

/** `readMembers` of the protocol, with the error of a request. */
export function toMembers<Required extends string, Optional extends string = never>(
  value: unknown,
  required: readonly Required[],
  optional: readonly Optional[] = [],
): Record<Required | Optional, unknown> {
  return readMembers(value, { required, optional }, invalidRequest)
}

export function invalidRequest(details: string, cause?: unknown): EnclaveError {
  return new EnclaveError('invalid_request', 'invalid request', { details, cause })
}
