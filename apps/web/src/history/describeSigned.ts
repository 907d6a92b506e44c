import type { Hex, TransactionSummary } from '@countersign/sdk'
import { isAddressEqual, zeroAddress } from 'viem'
import type { WebConfig } from '../config.ts'
import { parseTransferData } from '../token/erc20.ts'
import { toCoin, toShortAmount } from '../words/format.ts'

export type Description = {
  direction: 'out' | 'in' | 'none'
  what: string
  counterparty: Hex | null
  /** With sign and unit. Null if nothing is paid. */
  amount: string | null
}

/** Describes a signature. The service returns details only for transactions and authorizations. */
export function describeSigned(
  transaction: TransactionSummary,
  { from, page }: { from: Hex; page: Pick<WebConfig, 'chainId' | 'tokens'> },
): Description {
  if (transaction.kind === 'off-chain')
    return { direction: 'none', what: 'Off-chain signature', counterparty: null, amount: null }
  if (transaction.kind === 'address')
    return { direction: 'none', what: 'Address attested', counterparty: null, amount: null }
  if (transaction.kind === 'revocation')
    return { direction: 'none', what: 'Agent key revoked', counterparty: null, amount: null }
  if (transaction.kind === 'authorization') {
    const { implementation } = transaction
    if (isAddressEqual(implementation, zeroAddress))
      return { direction: 'none', what: 'Authorization to remove code', counterparty: null, amount: null }
    return { direction: 'none', what: 'Authorization for', counterparty: implementation, amount: null }
  }
  const { to, value, data, chainId } = transaction
  const token = page.tokens?.find((one) => one.chainId === chainId && isAddressEqual(one.address, to))
  const transfer = token === undefined || value !== '0' ? undefined : parseTransferData(data)
  if (token !== undefined && transfer !== undefined) {
    const amount = `${toShortAmount(transfer.amount, token.decimals)} ${token.symbol}`
    return describePayment({ from, recipient: transfer.recipient, amount })
  }
  const amount = `${toShortAmount(BigInt(value), 18)} ${toCoin({ chainId })}`
  if (data === '0x') return describePayment({ from, recipient: to, amount })
  return { direction: 'out', what: 'Contract call to', counterparty: to, amount: value === '0' ? null : `−${amount}` }
}

function describePayment({ from, recipient, amount }: { from: Hex; recipient: Hex; amount: string }): Description {
  if (isAddressEqual(from, recipient))
    return { direction: 'none', what: 'Sent to yourself', counterparty: null, amount }
  return { direction: 'out', what: 'Sent to', counterparty: recipient, amount: `−${amount}` }
}
