import {
  type Authorization,
  type Hex,
  isNatural,
  isPlainObject,
  isPrefixedHex,
  type OffChainContent,
  type OffChainKind,
  ServiceError,
  type TypedData,
} from '@countersign/protocol'
import { concat, getTypesForEIP712Domain, hashMessage, hashStruct, keccak256, toHex } from 'viem'
import { createError } from './errors.ts'
import { isChecked } from './parseSignRequest.ts'

/** Text, signed in UTF-8, or bytes. */
export type SignMessageRequest = { message: string | { raw: Hex | Uint8Array } }

/** EIP-712 typed data as viem takes it. Integers may be bigints. */
export type SignTypedDataRequest = TypedData

/** Lets the account run the code of `address` on the client's chain, if `nonce` is the account's next nonce. */
export type SignAuthorizationRequest = Omit<Authorization, 'chainId'> & {
  /** Must be the client's chain. */
  chainId?: number | undefined
}

/** An off-chain request as sent to the service, with the digest that the signature must cover. */
export type OffChain<Kind extends OffChainKind = OffChainKind> = { digest: Hex } & Extract<
  OffChainContent,
  { kind: Kind }
>

/** Encoders replace half a surrogate pair, so the service would sign another text. */
const LONE_SURROGATE = /\p{Cs}/u

export function parseMessage(request: SignMessageRequest): OffChain<'message'> {
  const input: unknown = request?.message
  const raw = (input as Partial<{ raw: unknown }> | null | undefined)?.raw
  const isText = typeof input === 'string' && !LONE_SURROGATE.test(input)
  const message = isText ? toHex(input) : raw instanceof Uint8Array ? toHex(raw) : raw
  if (!isPrefixedHex(message)) throw invalid('invalid_message', 'expected text, or { raw }')
  const content = { message: message.toLowerCase() as Hex }
  return { kind: 'message', digest: hashMessage({ raw: message }), content }
}

/** `chainId` is the client's: EIP-712 says to reject a domain of another chain. */
export function parseTypedData(request: SignTypedDataRequest, chainId: number): OffChain<'typed-data'> {
  try {
    const { domain, types, primaryType, message } = request
    // A copy, because the caller may change the original later.
    const content = toJson({ domain, types, primaryType, message }) as TypedData
    const domainChainId = content.domain.chainId as number | undefined
    if (Number(domainChainId ?? chainId) !== chainId) {
      throw invalid('invalid_typed_data', `not for chain ${chainId}`)
    }
    // The service hashes every member of the domain. viem would omit an empty version and a chain id written as a string.
    const present = {
      ...content.domain,
      version: 'version' in content.domain,
      chainId: domainChainId && chainId,
    } as never
    const all: TypedData['types'] = { ...content.types, EIP712Domain: getTypesForEIP712Domain({ domain: present }) }
    // viem's `hashTypedData` rejects structs whose names begin like those of numbers and bytes.
    const hash = (primaryType: string, data: unknown) =>
      hashStruct({ types: all, primaryType, data: lowerCaseAddresses(all, primaryType, data) } as never)
    const digest = keccak256(
      concat(['0x1901', hash('EIP712Domain', content.domain), hash(primaryType, content.message)]),
    )
    return { kind: 'typed-data', digest, content }
  } catch (cause) {
    // viem's messages repeat values, and `details` may be logged.
    throw cause instanceof ServiceError ? cause : invalid('invalid_typed_data', 'no hash by EIP-712', cause)
  }
}

/**
 * A copy with its addresses in lower case: viem would require a checksum, and the service doesn't. `type` is the type without
 * brackets.
 */
function lowerCaseAddresses<T>(types: TypedData['types'], type: string, value: T): unknown {
  return Array.isArray(value)
    ? value.map((item) => lowerCaseAddresses(types, type, item))
    : type === 'address'
      ? (value as string).toLowerCase()
      : types[type]
        ? Object.fromEntries(
            types[type].map((one) => [
              one.name,
              lowerCaseAddresses(types, one.type.replace(/\[.*/, ''), value[one.name as keyof T]),
            ]),
          )
        : value
}

export function parseAuthorization(request: SignAuthorizationRequest, expected: number): Authorization {
  const { chainId = expected, address, nonce } = request ?? {}
  // An authorization for chain 0 would be valid on every chain.
  if (chainId !== expected || !isChecked(address) || !isNatural(nonce)) {
    throw invalid('invalid_request', `expected address and nonce, for chain ${expected}`)
  }
  return { chainId, address: address.toLowerCase() as Hex, nonce }
}

/**
 * A copy as JSON carries it, with bigints in decimal and without undefined members. Throws for every other value that JSON would drop,
 * round or convert, because the service would then sign something else.
 */
function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return Array.from(value, toJson)
  if (isPlainObject(value)) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return Object.fromEntries(members.map(([name, member]) => [toJson(name), toJson(member)]))
  }
  const isText = typeof value === 'string' && !LONE_SURROGATE.test(value)
  if (isText || typeof value === 'boolean' || Number.isSafeInteger(value)) return value
  throw invalid('invalid_typed_data', `JSON would change a ${typeof value}`)
}

type Code = 'invalid_message' | 'invalid_request' | 'invalid_typed_data'

function invalid(code: Code, details: string, cause?: unknown): ServiceError {
  return createError(code, code.replaceAll('_', ' '), { details, cause })
}
