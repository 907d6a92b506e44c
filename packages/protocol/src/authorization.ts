import { keccak_256 } from '@noble/hashes/sha3.js'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, type Hex } from './hex.ts'
import { encodeRlp, type RlpItem, toScalar } from './rlp.ts'
import { anyCase, type Infer, natural, object, parse } from './schema.ts'
import { parseSignature } from './signature.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** An EIP-7702 authorization: on this chain, an account with this nonce delegates to the code of `address`. */
export const authorization = object({ chainId: natural, address: anyCase(20), nonce: natural })
export type Authorization = Infer<typeof authorization>

/** The first byte of EIP-7702's message. No EIP-2718 transaction has this type. */
const MAGIC = '05'

/** Parses an authorization and writes its address in lower case. Doesn't check whether it may be signed. */
export function parseAuthorization(value: unknown): Authorization {
  const { chainId, address, nonce } = parse(authorization, value, invalid)
  return { chainId, address: address.toLowerCase() as Hex, nonce }
}

/**
 * Rejects authorizations for every chain (chain 0) and code that is not on the list. The code can take everything that the account holds,
 * without another signature.
 */
export function assertAuthorizationAllowed(authorization: Authorization, implementations: readonly Hex[]): void {
  const { chainId, address } = parseAuthorization(authorization)
  if (chainId === 0) throw notAllowed('chainId 0 is valid on every chain')
  if (!implementations.includes(address)) throw notAllowed('the implementation is not on the list')
}

/** The digest to sign: keccak256(0x05 ‖ RLP([chainId, address, nonce])). */
export function hashAuthorization(authorization: Authorization): Bytes {
  return keccak_256(fromHex(MAGIC + encodeRlp(toFields(authorization))))
}

/**
 * The hash of a signed authorization in the on-chain event: keccak256(RLP([chainId, address, nonce, yParity, r, s])). `signature` is
 * r ‖ s ‖ v.
 */
export function hashSignedAuthorization(authorization: Authorization, signature: Uint8Array): Bytes {
  const { r, s, yParity } = parseSignature(signature)
  return keccak_256(fromHex(encodeRlp([...toFields(authorization), toScalar(yParity), toScalar(r), toScalar(s)])))
}

function toFields(given: Authorization): RlpItem[] {
  const { chainId, address, nonce } = parseAuthorization(given)
  return [toScalar(chainId), address.slice(2), toScalar(nonce)]
}

function invalid(details: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_request', 'invalid authorization', { details })
}

function notAllowed(details: string) {
  return new ServiceError<ProtocolErrorCode>('authorization_not_allowed', 'authorization not allowed', { details })
}
