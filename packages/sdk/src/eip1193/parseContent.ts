import { type Hex, isPrefixedHex } from '@countersign/protocol'
import { type OffChain, parseMessage, parseTypedData, type SignTypedDataRequest } from '../client/parseOffChain.ts'
import { invalidParams } from './errors.ts'

/** What a dapp asks to have signed off the chain, and with which account. */
export type RequestedContent = { from: Hex; asked: OffChain }

/**
 * Reads the parameters of `personal_sign`: the message, then the account. Some dapps have them the other way round, as in `eth_sign`;
 * that is taken only where it cannot be meant otherwise.
 */
export function parsePersonalSign(params: unknown): RequestedContent {
  const [first, second] = toList(params)
  const [message, from] = isPrefixedHex(first, 20) && !isPrefixedHex(second, 20) ? [second, first] : [first, second]
  if (typeof message !== 'string' || !isPrefixedHex(from, 20)) throw invalidParams('expected a message and an account')
  // In hex, as the method has it. Plain text is taken too, unless it could be meant as hex that is cut off or misspelt.
  if (!isPrefixedHex(message) && /^0x/i.test(message)) throw invalidParams('the message is not hex of whole bytes')
  return { from, asked: parseMessage({ message: isPrefixedHex(message) ? { raw: message } : message }) }
}

/** Reads the parameters of `eth_signTypedData_v4`: the account, then the typed data, as an object or as JSON. */
export function parseSignTypedData(params: unknown, chainId: number): RequestedContent {
  const [from, given] = toList(params)
  if (!isPrefixedHex(from, 20)) throw invalidParams('expected an account and typed data')
  const typedData = typeof given === 'string' ? parseText(given) : given
  return { from, asked: parseTypedData(typedData as SignTypedDataRequest, chainId) }
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
