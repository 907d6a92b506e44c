import { isPrefixedHex } from '@countersign/protocol'
import type { Hex } from '@countersign/sdk'
import { getAddress, isAddress, parseUnits } from 'viem'
import type { Token } from '../config.ts'
import { type TransferCall, toTransferData } from '../token/erc20.ts'
import { findErrors } from '../ui/useFieldErrors.ts'

export type SendFields = {
  /** A token's address. Empty for ether. */
  asset: string
  to: string
  amount: string
  data: string
  gas: string
}
export type FieldErrors = Partial<Record<keyof SendFields, string>>

export type Payment = {
  /** With its checksum. For a token payment, the token's contract. */
  to: Hex
  valueWei: bigint
  data: Hex
  /** Null to estimate it. */
  gas: bigint | null
  /** Null for ether. */
  transfer: Transfer | null
}

export type Transfer = TransferCall & { token: Token }

/** 2^256 wei has 60 digits of ether, and no token needs more than 78. The limit keeps BigInt from parsing megabytes. */
const MAX_LENGTH = 120
const MIN_GAS = 21_000n
/** The service accepts 128 KiB for the whole request. */
const MAX_DATA_BYTES = 48 * 1024

/** Parses the form, or returns an error for each wrong field. */
export function parseFields(
  fields: SendFields,
  { tokens, coin }: { tokens: readonly Token[]; coin: string },
): { payment: Payment } | { errors: FieldErrors } {
  const token = tokens.find(({ address }) => address === fields.asset) ?? null
  const asset = token ?? { symbol: coin, decimals: 18 }
  const [to = '', amount = ''] = [fields.to, fields.amount].map((text) => text.trim())
  // A token transfer has its own data, so these fields are hidden.
  const [data = '', gas = ''] = token === null ? [fields.data, fields.gas].map((text) => text.trim()) : []
  const hasData = data !== '' && data !== '0x'
  const errors = findErrors<keyof SendFields>({
    // The token list is fixed when the page loads.
    asset: fields.asset !== '' && token === null ? 'Unknown token. Choose another one.' : undefined,
    to: findAddressFault(to),
    amount: hasData && amount === '' ? undefined : findAmountFault(amount, { ...asset, isZeroAllowed: hasData }),
    data: hasData ? findDataFault(data) : undefined,
    gas: gas === '' ? undefined : findGasFault(gas),
  })
  if (errors) return { errors }
  const units = amount === '' ? 0n : parseUnits(amount, asset.decimals)
  if (token !== null) return { payment: toTokenPayment({ token, recipient: getAddress(to), amount: units }) }
  return {
    payment: {
      to: getAddress(to),
      valueWei: units,
      data: hasData ? (data.toLowerCase() as Hex) : '0x',
      gas: gas === '' ? null : BigInt(gas),
      transfer: null,
    },
  }
}

/** Builds a token payment: a call of the token's contract. */
export function toTokenPayment(transfer: Transfer): Payment {
  const { token } = transfer
  return { to: getAddress(token.address), valueWei: 0n, data: toTransferData(transfer), gas: null, transfer }
}

export function findAddressFault(text: string): string | undefined {
  if (text === '') return 'Enter the recipient’s address.'
  if (/\.eth$/i.test(text)) return 'ENS names aren’t supported. Enter the address, which starts with 0x.'
  if (!isPrefixedHex(text, 20)) return 'Enter 0x followed by 40 hex digits.'
  // Addresses in upper case only have no checksum (EIP-55).
  if (!isAddress(text) && !/^0x[0-9A-F]{40}$/.test(text)) return 'This address has a wrong checksum. Copy it again.'
}

type AmountRules = { symbol: string; decimals: number; isZeroAllowed: boolean }

export function findAmountFault(text: string, { symbol, decimals, isZeroAllowed }: AmountRules): string | undefined {
  if (text === '') return 'Enter an amount.'
  if (text.startsWith('-')) return 'Enter a positive amount.'
  if (text.includes(',')) return 'Use a point for decimals and no thousands separators.'
  if (!/^(?:[0-9]+\.?[0-9]*|\.[0-9]+)$/.test(text)) return 'Enter a number, such as 0.05.'
  const { length } = text.split('.')[1] ?? ''
  // More decimals would be rounded, so the signed amount would differ from the entered one.
  if (length > decimals) return `Enter at most ${decimals} decimals for ${symbol}, not ${length}.`
  if (text.length > MAX_LENGTH || parseUnits(text, decimals) >= 1n << 256n)
    return `This is more ${symbol} than can exist.`
  if (!isZeroAllowed && parseUnits(text, decimals) === 0n) return 'Enter an amount above zero.'
}

function findDataFault(text: string): string | undefined {
  if (!/^0x[0-9a-fA-F]*$/.test(text)) return 'Enter 0x followed by hex digits.'
  if (text.length % 2 !== 0) return 'Enter an even number of hex digits, two for each byte.'
  if (text.length / 2 - 1 > MAX_DATA_BYTES) return `Enter at most ${MAX_DATA_BYTES / 1024} KiB of data.`
}

function findGasFault(text: string): string | undefined {
  if (!/^[0-9]{1,18}$/.test(text)) return 'Enter a whole number without separators.'
  if (BigInt(text) < MIN_GAS) return `Enter at least ${MIN_GAS}, the minimum for any transaction.`
}
