import type { Hex } from '@countersign/sdk'
import { getAddress, isAddress, parseEther } from 'viem'

/** What is typed into the form. */
export type SendFields = { to: string; amount: string; data: string; gas: string }
export type FieldErrors = Partial<Record<keyof SendFields, string>>

/** What is meant by it. */
export type Payment = {
  /** With its checksum, for reading. */
  to: Hex
  valueWei: bigint
  data: Hex
  /** Null: whatever the chain estimates. */
  gas: bigint | null
}

const MAX_DECIMALS = 18
/** 2^256 wei have 60 digits of ether. The bound keeps BigInt from reading megabytes. */
const MAX_LENGTH = 80
const MIN_GAS = 21_000n
/** What the service takes is 128 KiB with everything around it. */
const MAX_DATA_BYTES = 48 * 1024

/** Reads the form, or says beside which field what is wrong. */
export function parseFields(fields: SendFields): { payment: Payment } | { errors: FieldErrors } {
  const [to, amount, data, gas] = [fields.to, fields.amount, fields.data, fields.gas].map((text) => text.trim()) as [
    string,
    string,
    string,
    string,
  ]
  const hasData = data !== '' && data !== '0x'
  const candidates = {
    to: findAddressFault(to),
    amount: hasData && amount === '' ? undefined : findAmountFault(amount, { isZeroAllowed: hasData }),
    data: hasData ? findDataFault(data) : undefined,
    gas: gas === '' ? undefined : findGasFault(gas),
  }
  const errors = Object.fromEntries(Object.entries(candidates).filter(([, fault]) => fault !== undefined))
  if (Object.keys(errors).length > 0) return { errors }
  return {
    payment: {
      to: getAddress(to),
      valueWei: amount === '' ? 0n : parseEther(amount),
      data: hasData ? (data.toLowerCase() as Hex) : '0x',
      gas: gas === '' ? null : BigInt(gas),
    },
  }
}

function findAddressFault(text: string): string | undefined {
  if (text === '') return 'Enter the address of the recipient.'
  if (/\.eth$/i.test(text)) return 'Names are not looked up here. Enter the address itself, which starts with 0x.'
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) return 'An address is 0x and 40 digits or letters from a to f.'
  // All in capitals it has no checksum (EIP-55).
  if (!isAddress(text) && !/^0x[0-9A-F]{40}$/.test(text))
    return 'A character is mistyped: capitals and small letters do not match. Copy the address again.'
}

function findAmountFault(text: string, { isZeroAllowed }: { isZeroAllowed: boolean }): string | undefined {
  if (text === '') return 'Enter an amount.'
  if (text.startsWith('-')) return 'An amount cannot be negative.'
  if (text.includes(',')) return 'Use a point for decimals, and nothing between thousands.'
  if (!/^(?:[0-9]+\.?[0-9]*|\.[0-9]+)$/.test(text)) return 'Enter a number, such as 0.05.'
  const decimals = text.split('.')[1] ?? ''
  if (decimals.length > MAX_DECIMALS) return `Ether has at most ${MAX_DECIMALS} decimals; this has ${decimals.length}.`
  if (text.length > MAX_LENGTH || parseEther(text) >= 1n << 256n) return 'That is more ether than can exist.'
  if (!isZeroAllowed && parseEther(text) === 0n) return 'Enter more than zero.'
}

function findDataFault(text: string): string | undefined {
  if (!/^0x[0-9a-fA-F]*$/.test(text)) return 'Data is 0x and hex digits.'
  if (text.length % 2 !== 0) return 'A digit is missing or too many: data is whole bytes, two digits each.'
  if (text.length / 2 - 1 > MAX_DATA_BYTES) return `That is too long: at most ${MAX_DATA_BYTES / 1024} KiB.`
}

function findGasFault(text: string): string | undefined {
  if (!/^[0-9]{1,18}$/.test(text)) return 'Gas is a whole number, without separators.'
  if (BigInt(text) < MIN_GAS) return `Every transaction needs at least ${MIN_GAS} gas.`
}
