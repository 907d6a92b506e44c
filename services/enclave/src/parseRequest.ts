import {
  type AttestRequest,
  type CallerAttestation,
  isEntropyWitness,
  isHex,
  MAX_SIGN_ITEMS,
  type OpenSessionRequest,
  parseJson,
  readMembers,
  type SignItem,
  type SignTransactionsRequest,
} from '@countersign/protocol'
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

/** Items of the wrong shape are undefined: one of them must not fail the others. */
export function parseSignTransactionsRequest(value: unknown): { items: (SignItem | undefined)[] } {
  const { items } = toMembers(value, ['items'])
  if (!Array.isArray(items) || items.length < 1 || items.length > MAX_SIGN_ITEMS) {
    throw invalidRequest(`items is not a list of 1 to ${MAX_SIGN_ITEMS}`)
  }
  return { items: items.map(toSignItem) }
}

function toSignItem(value: unknown): SignTransactionsRequest['items'][number] | undefined {
  try {
    const names = ['sid', 'grant', 'keyId', 'digest', 'txMetadata', 'witness'] as const
    const { sid, grant, keyId, digest, txMetadata, witness } = toMembers(value, names)
    const isWhole =
      isHex(sid, 32) &&
      typeof grant === 'string' &&
      isHex(keyId, 16) &&
      typeof digest === 'string' &&
      digest.startsWith('0x') &&
      isHex(digest.slice(2), 32) &&
      isEntropyWitness(witness)
    // The transaction's fields have their own check, with its own error, where it is rebuilt.
    return isWhole ? ({ sid, grant, keyId, digest, txMetadata, witness } as SignItem) : undefined
  } catch (error) {
    if (error instanceof EnclaveError) return undefined
    throw error
  }
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
