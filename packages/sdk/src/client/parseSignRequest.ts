import { type Hex, isPlainObject, isPrefixedHex, type SignRequest } from '@countersign/protocol'
import { isAddress, parseEther } from 'viem'
import { createError } from './errors.ts'

/** A `SignRequest` with its defaults and in wei. */
export type Call = { to: Hex; value: bigint; data: Hex; gas: bigint }

/** At most 18 decimals, because more would be rounded. */
const ETHER = /^(?:[0-9]+\.?|[0-9]*\.[0-9]{1,18})$/
/** 2^256 wei have 60 digits of ether. Keeps BigInt from parsing megabytes. */
const MAX_ETHER_LENGTH = 80
const DEFAULT_GAS = 21_000n

export function parseSignRequest(request: SignRequest): Call {
  if (!isPlainObject(request)) throw invalid('not an object')
  const { to, data = '0x', gas = DEFAULT_GAS, value } = request as SignRequest
  if (!isChecked(to)) throw invalid('`to` is not an address')
  if (!isPrefixedHex(data)) throw invalid('`data` is not hex')
  if (typeof gas !== 'bigint' || gas <= 0n || gas >= 1n << 64n) throw invalid('`gas` is out of range')
  return { to: to.toLowerCase() as Hex, value: parseValue(value), data, gas }
}

/** Rejects a wrong EIP-55 checksum, which is a typing error. An address without lower-case letters has no checksum. */
export function isChecked(address: unknown): address is Hex {
  return typeof address === 'string' && isAddress(address, { strict: /[a-f]/.test(address) })
}

function parseValue(value: unknown = 0n): bigint {
  const isEther = typeof value === 'string' && value.length <= MAX_ETHER_LENGTH && ETHER.test(value)
  const wei = isEther ? parseEther(value as `${number}`) : value
  if (typeof wei !== 'bigint') throw invalid('`value` is not wei (bigint) or ether (text)')
  if (wei < 0n || wei >= 1n << 256n) throw invalid('`value` is out of range')
  return wei
}

function invalid(details: string) {
  return createError('invalid_request', 'the transaction cannot be built', { details })
}
