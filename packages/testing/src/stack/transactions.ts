import { type Hex, hashUnsignedTransaction, type TxMetadata, toPrefixedHex } from '@countersign/protocol'

/** A transaction that differs with each nonce. */
export function createTx(nonce: number, changes: Partial<TxMetadata> = {}): TxMetadata {
  return {
    chainId: 31337,
    nonce,
    to: `0x${'11'.repeat(20)}`,
    value: '1',
    data: '0x',
    gas: '21000',
    maxFeePerGas: '2',
    maxPriorityFeePerGas: '1',
    ...changes,
  }
}

export function toDigest(txMetadata: TxMetadata): Hex {
  return toPrefixedHex(hashUnsignedTransaction(txMetadata))
}
