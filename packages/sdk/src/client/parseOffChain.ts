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

/** What `signMessage` takes: text, which is signed in UTF-8, or bytes. */
export type SignMessageRequest = { message: string | { raw: Hex | Uint8Array } }

/** What `signTypedData` takes: EIP-712 as viem has it. Integers may be bigints. */
export type SignTypedDataRequest = TypedData

/** What `signAuthorization` takes: the account runs the code of `address`, on the client's chain, if its nonce is this one. */
export type SignAuthorizationRequest = Omit<Authorization, 'chainId'> & {
  /** The client's chain: no other is signed for. */
  chainId?: number | undefined
}

/** What is to be signed off the chain, as it is sent, with the digest that the signature must be over. */
export type OffChain<Kind extends OffChainKind = OffChainKind> = { digest: Hex } & Extract<
  OffChainContent,
  { kind: Kind }
>

/** Half a surrogate pair: encoders replace it, so that another text would be signed than the one that was asked for. */
const LONE_SURROGATE = /\p{Cs}/u

/** Reads a message before anything is sent. */
export function parseMessage(request: SignMessageRequest): OffChain<'message'> {
  const given: unknown = request?.message
  const raw = (given as Partial<{ raw: unknown }> | null | undefined)?.raw
  const isText = typeof given === 'string' && !LONE_SURROGATE.test(given)
  const message = isText ? toHex(given) : raw instanceof Uint8Array ? toHex(raw) : raw
  if (!isPrefixedHex(message)) throw invalid('invalid_message', 'expected text, or { raw }')
  const content = { message: message.toLowerCase() as Hex }
  return { kind: 'message', digest: hashMessage({ raw: message }), content }
}

/** Reads typed data before anything is sent. `chainId` is the client's: EIP-712 wants a domain of another chain refused. */
export function parseTypedData(request: SignTypedDataRequest, chainId: number): OffChain<'typed-data'> {
  try {
    const { domain, types, primaryType, message } = request
    // A copy: what the caller changes later is neither sent nor hashed.
    const content = toJson({ domain, types, primaryType, message }) as TypedData
    const asked = content.domain.chainId as number | undefined
    if (Number(asked ?? chainId) !== chainId) {
      throw invalid('invalid_typed_data', `not for chain ${chainId}`)
    }
    // By the members that are there, as the service does. viem would leave out an empty version, and a chain that is written as a string.
    const present = { ...content.domain, version: 'version' in content.domain, chainId: asked && chainId } as never
    const all: TypedData['types'] = { ...content.types, EIP712Domain: getTypesForEIP712Domain({ domain: present }) }
    // Not viem's `hashTypedData`: it refuses structs whose names begin as those of numbers and bytes do.
    const hash = (primaryType: string, data: unknown) =>
      hashStruct({ types: all, primaryType, data: lower(all, primaryType, data) } as never)
    const digest = keccak256(
      concat(['0x1901', hash('EIP712Domain', content.domain), hash(primaryType, content.message)]),
    )
    return { kind: 'typed-data', digest, content }
  } catch (cause) {
    // No details of viem's: it repeats values, and details go into logs.
    throw cause instanceof ServiceError ? cause : invalid('invalid_typed_data', 'no hash by EIP-712', cause)
  }
}

/**
 * A copy with its addresses in lower case: viem would ask any other for a checksum, and the service asks for none. `type` is without
 * brackets, that of the items of a list.
 */
function lower<T>(types: TypedData['types'], type: string, value: T): unknown {
  return Array.isArray(value)
    ? value.map((item) => lower(types, type, item))
    : type === 'address'
      ? (value as string).toLowerCase()
      : types[type]
        ? Object.fromEntries(
            types[type].map((one) => [
              one.name,
              lower(types, one.type.replace(/\[.*/, ''), value[one.name as keyof T]),
            ]),
          )
        : value
}

/** Reads an authorization before anything is sent. */
export function parseAuthorization(request: SignAuthorizationRequest, expected: number): Authorization {
  const { chainId = expected, address, nonce } = request ?? {}
  // Chain 0 would hold on every chain.
  if (chainId !== expected || !isChecked(address) || !isNatural(nonce)) {
    throw invalid('invalid_request', `expected address and nonce, for chain ${expected}`)
  }
  return { chainId, address: address.toLowerCase() as Hex, nonce }
}

/**
 * A copy as JSON carries it, with bigints in decimal. Members that are undefined are left out, as everywhere in JSON; whatever
 * else JSON would drop, round or convert is refused, since the service would then sign something else.
 */
function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return Array.from(value, toJson)
  if (isPlainObject(value)) {
    const given = Object.entries(value).filter(([, member]) => member !== undefined)
    return Object.fromEntries(given.map(([name, member]) => [toJson(name), toJson(member)]))
  }
  const isText = typeof value === 'string' && !LONE_SURROGATE.test(value)
  if (isText || typeof value === 'boolean' || Number.isSafeInteger(value)) return value
  throw invalid('invalid_typed_data', `JSON would change a ${typeof value}`)
}

type Code = 'invalid_message' | 'invalid_request' | 'invalid_typed_data'

function invalid(code: Code, details: string, cause?: unknown): ServiceError {
  return createError(code, code.replaceAll('_', ' '), { details, cause })
}
