import { fromHex, isPlainObject, parseJson, ServiceError } from '@countersign/protocol/core'
import { QuoteError, type QuoteErrorCode } from '../errors.ts'
import { parseCrl } from '../x509/parseCrl.ts'

/**
 * The collateral of a TDX quote, from Intel's PCS (evidence.md, section 5). Members are named as in Intel's
 * `sgx_ql_qve_collateral_t`. Issuer chains are PEM, leaf first. CRLs are DER in hex. `tcb_info` and `qe_identity` are the exact
 * JSON texts that Intel signed.
 */
export type Collateral = {
  pck_crl_issuer_chain: string
  root_ca_crl: string
  pck_crl: string
  tcb_info_issuer_chain: string
  tcb_info: string
  tcb_info_signature: string
  qe_identity_issuer_chain: string
  qe_identity: string
  qe_identity_signature: string
}

const MEMBERS = [
  'pck_crl_issuer_chain',
  'root_ca_crl',
  'pck_crl',
  'tcb_info_issuer_chain',
  'tcb_info',
  'tcb_info_signature',
  'qe_identity_issuer_chain',
  'qe_identity',
  'qe_identity_signature',
] as const satisfies (keyof Collateral)[]

const MAX_COLLATERAL_CHARACTERS = 8_388_608

/**
 * Reads collateral from its JSON text. Rejects missing and unknown members, members that are not strings, and white space
 * around the object.
 *
 * @example
 * const collateral = parseCollateral((await readFile('collateral.json', 'utf8')).trim())
 */
export function parseCollateral(json: string): Collateral {
  if (json.length > MAX_COLLATERAL_CHARACTERS) throw malformed('too large')
  // JSON allows white space around the object. Here it would be bytes that anyone can change.
  if (!json.startsWith('{') || !json.endsWith('}')) throw malformed('not an object')
  let value: unknown
  try {
    value = parseJson(json)
  } catch {
    throw malformed('not JSON')
  }
  assertCollateral(value)
  return value
}

/** Narrows a parsed value to collateral. */
export function assertCollateral(value: unknown): asserts value is Collateral {
  if (!isPlainObject(value)) throw malformed('not an object')
  const members = new Map<string, unknown>(Object.entries(value))
  for (const name of MEMBERS) if (typeof members.get(name) !== 'string') throw malformed(`${name} is not a string`)
  const unknown = [...members.keys()].find((name) => !MEMBERS.some((member) => member === name))
  if (unknown !== undefined) throw malformed('unknown member')
}

/** A cache key: equal only for equal collateral. */
export function toCollateralKey(collateral: Collateral): string {
  return MEMBERS.map((name) => `${collateral[name].length}:${collateral[name]}`).join('')
}

export function parseHexCrl(hex: string) {
  return parseCrl(decodeHex(hex, 'crl_malformed', 'malformed revocation list'))
}

/** An ECDSA P-256 signature, r ‖ s. */
export function parseHexSignature(hex: string, code: 'tcb_info_signature_invalid' | 'qe_identity_signature_invalid') {
  const signature = decodeHex(hex, code, 'malformed signature')
  if (signature.length !== 64) throw new QuoteError(code, 'malformed signature')
  return signature
}

function decodeHex(hex: string, code: QuoteErrorCode, message: string) {
  try {
    return fromHex(hex)
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    throw new QuoteError(code, message, { details: cause.message, cause })
  }
}

function malformed(details: string) {
  return new QuoteError('collateral_malformed', 'malformed collateral', { details })
}
