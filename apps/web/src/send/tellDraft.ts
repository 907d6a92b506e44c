import type { Hex } from '@countersign/sdk'
import { formatEther, formatUnits } from 'viem'
import type { Draft } from './prepareDraft.ts'

/** The exact amount, with its unit. */
export function tellAmount({ valueWei, transfer }: Pick<Draft, 'valueWei' | 'transfer'>): string {
  if (transfer === null) return `${formatEther(valueWei)} ETH`
  return `${formatUnits(transfer.amount, transfer.token.decimals)} ${transfer.token.symbol}`
}

/** Who gets it: of a token that is not the address that the transaction goes to. */
export function toRecipient({ to, transfer }: Pick<Draft, 'to' | 'transfer'>): Hex {
  return transfer === null ? to : transfer.recipient
}
