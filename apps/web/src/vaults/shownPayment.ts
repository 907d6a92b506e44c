import type { TxMetadata } from '@countersign/protocol'
import type { Hex } from '@countersign/sdk'
import { isAddressEqual } from 'viem'
import type { Token } from '../config.ts'
import type { Draft } from '../send/prepareDraft.ts'
import { parseTransferData } from '../token/transferData.ts'

/** What a transaction pays, and to whom; `transfer` only of a token that is configured, since only its decimals are known. */
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
