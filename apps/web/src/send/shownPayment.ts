import type { TxMetadata } from '@countersign/protocol'
import type { Hex } from '@countersign/sdk'
import { formatEther, formatUnits, isAddressEqual } from 'viem'
import type { Token } from '../config.ts'
import { parseTransferData } from '../token/erc20.ts'
import type { Draft } from './prepareDraft.ts'

/** The exact amount with its unit. */
export function formatPaymentAmount(
  { valueWei, transfer }: Pick<Draft, 'valueWei' | 'transfer'>,
  coin: string,
): string {
  if (transfer === null) return `${formatEther(valueWei)} ${coin}`
  return `${formatUnits(transfer.amount, transfer.token.decimals)} ${transfer.token.symbol}`
}

/** The recipient. For a token payment, this isn't the transaction's `to`. */
export function toRecipient({ to, transfer }: Pick<Draft, 'to' | 'transfer'>): Hex {
  return transfer === null ? to : transfer.recipient
}

/** A payment's amount and recipient. `transfer` is set only for configured tokens, whose decimals are known. */
export type ShownPayment = Pick<Draft, 'to' | 'valueWei' | 'transfer'>

export function toShownPayment({ chainId, to, value, data }: TxMetadata, tokens: readonly Token[]): ShownPayment {
  const token = tokens.find((one) => one.chainId === chainId && isAddressEqual(one.address, to as Hex))
  const call = token === undefined || value !== '0' ? undefined : parseTransferData(data as Hex)
  return {
    to: to as Hex,
    valueWei: BigInt(value),
    transfer: token === undefined || call === undefined ? null : { ...call, token },
  }
}
