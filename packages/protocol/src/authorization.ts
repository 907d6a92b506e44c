import { keccak_256 } from '@noble/hashes/sha3.js'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, type Hex } from './hex.ts'
import { encodeRlp, type RlpItem, toScalar } from './rlp.ts'
import { anyCase, type Infer, natural, object, parse } from './schema.ts'
import { parseSignature } from './signature.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** An EIP-7702 authorization: the account that signs it runs the code of `address`, on this chain, if its nonce is this one. */
export const authorization = object({ chainId: natural, address: anyCase(20), nonce: natural })
export type Authorization = Infer<typeof authorization>

/** EIP-7702's own first byte: no EIP-2718 transaction has this type. */
const MAGIC = '05'

/** Reads an authorization into its one spelling, with the address in lower case. Whether it may be signed is another question. */
export function parseAuthorization(value: unknown): Authorization {
  const { chainId, address, nonce } = parse(authorization, value, invalid)
  return { chainId, address: address.toLowerCase() as Hex, nonce }
}

/**
 * Refuses authorizations that would hold on every chain (chain 0), and code that is not on the list: what an account delegates to
 * can take all that it holds, without another signature.
 */
export function assertAuthorizationAllowed(authorization: Authorization, implementations: readonly Hex[]): void {
  const { chainId, address } = parseAuthorization(authorization)
  if (chainId === 0) throw notAllowed('chainId 0 is valid on every chain')
  if (!implementations.includes(address)) throw notAllowed('an implementation that is not on the list')
}

/** The digest that a wallet key signs: keccak256(0x05 ‖ RLP([chainId, address, nonce])). */
export function hashAuthorization(authorization: Authorization): Bytes {
  return keccak_256(fromHex(MAGIC + encodeRlp(toFields(authorization))))
}

/** How the event names a signed authorization: keccak256(RLP([chainId, address, nonce, yParity, r, s])). `signature` is r ‖ s ‖ v. */
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
