import { type Hex, isPrefixedHex } from '@countersign/protocol'
import { findUnsupportedField, unsupportedTransaction } from '../client/errors.ts'
import { type OffChain, parseMessage, parseTypedData, type SignTypedDataRequest } from '../client/parseOffChain.ts'
import { type Call, parseSignRequest } from '../client/parseSignRequest.ts'
import { Eip1193Error, eip1193Codes, invalidParams } from './errors.ts'

/** A dapp's transaction. The chain decides the values of `limits`: the dapp's values must match or the request fails. */
export type RequestedTransaction = {
  from: Hex | undefined
  call: Omit<Call, 'gas'>
  gas: bigint | undefined
  limits: {
    nonce: bigint | undefined
    maxFeePerGas: bigint | undefined
    maxPriorityFeePerGas: bigint | undefined
  }
}

/** Parses the parameters of `eth_sendTransaction`. */
export function parseTransaction(params: unknown, chainId: number): RequestedTransaction {
  const [input] = Array.isArray(params) ? (params as unknown[]) : []
  if (!isObject(input)) throw invalidParams('expected one transaction')
  const request = copyMembers(input)
  const type = toQuantity(request, 'type')
  if (type !== undefined && type !== 2n) throw unsupportedTransaction(`type ${request.type} is not that of EIP-1559`)
  const unsupported = findUnsupportedField(request)
  if (unsupported) throw unsupported
  const { accessList } = request
  if (isGiven(accessList) && !(Array.isArray(accessList) && accessList.length === 0)) {
    throw unsupportedTransaction('access lists are not signed')
  }
  if (!isGiven(request.to)) throw unsupportedTransaction('it creates a contract: there is no recipient')
  const requestedChain = toQuantity(request, 'chainId')
  if (requestedChain !== undefined && requestedChain !== BigInt(chainId)) {
    throw new Eip1193Error(
      eip1193Codes.chainDisconnected,
      `the wallet is on chain ${chainId}, not on ${requestedChain}`,
    )
  }
  const { from } = request
  if (isGiven(from) && !isPrefixedHex(from, 20)) throw invalidParams('from is not an address')
  const value = toQuantity(request, 'value') ?? 0n
  const { to, data } = parseSignRequest({ to: request.to as Hex, value, data: toData(request) })
  return {
    from: isGiven(from) ? (from as Hex) : undefined,
    call: { to, value, data },
    gas: toQuantity(request, 'gas'),
    limits: {
      nonce: toQuantity(request, 'nonce'),
      maxFeePerGas: toQuantity(request, 'maxFeePerGas'),
      maxPriorityFeePerGas: toQuantity(request, 'maxPriorityFeePerGas'),
    },
  }
}

/** JSON-RPC writes quantities in hex. Also accepts numbers, but no decimal string, which could be meant as hex. */
function toQuantity(request: Record<string, unknown>, name: string): bigint | undefined {
  const value = request[name]
  if (!isGiven(value)) return undefined
  if (typeof value === 'bigint' && value >= 0n) return value
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value)
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{1,64}$/.test(value)) return BigInt(value)
  throw invalidParams(`${name} is not a quantity in hex`)
}

function toData({ data, input }: Record<string, unknown>): Hex {
  for (const text of [data, input]) if (isGiven(text) && !isPrefixedHex(text)) throw invalidParams('data is not hex')
  const [first, second] = [data, input].filter(isGiven) as Hex[]
  if (first !== undefined && second !== undefined && first.toLowerCase() !== second.toLowerCase()) {
    throw invalidParams('data and input differ')
  }
  return first ?? '0x'
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Accepts objects of any realm, because a dapp may run in a frame. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Reads every member once, inherited ones too: a getter could return one value to a check and another to the signer. */
function copyMembers(input: Record<string, unknown>): Record<string, unknown> {
  const names = new Set<string>()
  for (let object: object | null = input; object !== null; object = Object.getPrototypeOf(object)) {
    for (const name of Object.getOwnPropertyNames(object)) names.add(name)
  }
  return Object.fromEntries([...names].map((name) => [name, input[name]]))
}

/** A dapp's message or typed data, and the account that should sign it. */
export type RequestedContent = { from: Hex; request: OffChain<'message' | 'typed-data'> }

/**
 * Parses the parameters of `personal_sign`: the message, then the account. Accepts the reverse order of `eth_sign` only if it is
 * unambiguous.
 */
export function parsePersonalSign(params: unknown): RequestedContent {
  const [first, second] = toList(params)
  const [message, from] = isPrefixedHex(first, 20) && !isPrefixedHex(second, 20) ? [second, first] : [first, second]
  if (typeof message !== 'string' || !isPrefixedHex(from, 20)) throw invalidParams('expected a message and an account')
  // The method has hex. Also accepts plain text, unless it looks like malformed hex.
  if (!isPrefixedHex(message) && /^0x/i.test(message)) throw invalidParams('the message is not hex of whole bytes')
  return { from, request: parseMessage({ message: isPrefixedHex(message) ? { raw: message } : message }) }
}

/** Parses the parameters of `eth_signTypedData_v4`: the account, then the typed data as an object or JSON. */
export function parseSignTypedData(params: unknown, chainId: number): RequestedContent {
  const [from, input] = toList(params)
  if (!isPrefixedHex(from, 20)) throw invalidParams('expected an account and typed data')
  const typedData = typeof input === 'string' ? parseText(input) : input
  return { from, request: parseTypedData(typedData as SignTypedDataRequest, chainId) }
}

function toList(params: unknown): unknown[] {
  return Array.isArray(params) ? params : []
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw invalidParams('the typed data is not JSON', cause)
  }
}
