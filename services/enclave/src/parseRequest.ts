import {
  type AttestRequest,
  type CallerAttestation,
  isHex,
  MAX_SIGN_ITEMS,
  type OpenSessionRequest,
  type SignItem,
  type SignTransactionsRequest,
} from '@countersign/protocol'
import { EnclaveError } from './errors.ts'

/** Reads the JSON body of a call. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new EnclaveError('invalid_json', 'the body is not JSON')
  }
}

export function parseAttestRequest(value: unknown): AttestRequest {
  const { nonce, caller } = toMembers(value, ['nonce'], ['caller'])
  if (!isHex(nonce, 32)) throw invalid('nonce')
  return caller === undefined ? { nonce } : { nonce, caller: parseCaller(caller) }
}

function parseCaller(value: unknown): CallerAttestation {
  const { report, certificates, configHash } = toMembers(value, ['report', 'certificates', 'configHash'])
  const { ek, ask, ark } = toMembers(certificates, ['ek', 'ask', 'ark'])
  if (!isHex(report) || !isHex(ek) || !isHex(ask) || !isHex(ark) || !isHex(configHash, 32)) throw invalid('caller')
  return { report, certificates: { ek, ask, ark }, configHash }
}

export function parseOpenSessionRequest(value: unknown): OpenSessionRequest {
  const { idToken, loginSecret } = toMembers(value, ['idToken', 'loginSecret'])
  if (typeof idToken !== 'string') throw invalid('idToken')
  if (!isHex(loginSecret, 32)) throw invalid('loginSecret')
  return { idToken, loginSecret }
}

/** Items that are not even of the right shape stay undefined: one of them must not fail the others. */
export function parseSignTransactionsRequest(value: unknown): { items: (SignItem | undefined)[] } {
  const { items } = toMembers(value, ['items'])
  if (!Array.isArray(items) || items.length < 1 || items.length > MAX_SIGN_ITEMS) {
    throw invalid(`items is not a list of 1 to ${MAX_SIGN_ITEMS}`)
  }
  return { items: items.map(toSignItem) }
}

function toSignItem(value: unknown): SignTransactionsRequest['items'][number] | undefined {
  try {
    const names = ['sid', 'grant', 'keyId', 'digest', 'txMetadata', 'entropyHash'] as const
    const { sid, grant, keyId, digest, txMetadata, entropyHash } = toMembers(value, names)
    const isWhole =
      isHex(sid, 32) &&
      typeof grant === 'string' &&
      isHex(keyId, 16) &&
      typeof digest === 'string' &&
      digest.startsWith('0x') &&
      isHex(digest.slice(2), 32) &&
      isHex(entropyHash, 32)
    // The transaction's fields have their own check, with its own error, where it is rebuilt.
    return isWhole ? ({ sid, grant, keyId, digest, txMetadata, entropyHash } as SignItem) : undefined
  } catch (error) {
    if (error instanceof EnclaveError) return undefined
    throw error
  }
}

/** The members of an object that has all the required ones, perhaps the optional ones, and no other. */
export function toMembers(
  value: unknown,
  required: readonly string[],
  optional: readonly string[] = [],
): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('not an object')
  const members = new Map<string, unknown>(Object.entries(value))
  for (const name of required) if (!members.has(name)) throw invalid(`${name} is missing`)
  const known = new Set<string>([...required, ...optional])
  for (const name of members.keys()) if (!known.has(name)) throw invalid('a member is unknown')
  return Object.fromEntries(members)
}

function invalid(details: string) {
  return new EnclaveError('invalid_request', 'invalid request', { details })
}
