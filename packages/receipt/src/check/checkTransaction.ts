import {
  fromHex,
  hashSignedTransaction,
  hashUnsignedTransaction,
  parseTxMetadata,
  recoverPublicKey,
  type TransactionSubject,
  toAddress,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { failIf, type Transcript } from './steps.ts'

/** digest → signature → tx-hash: the transaction, which has the same form in both versions. `publicKey` is the stated one. */
export async function checkTransaction(
  { run }: Transcript,
  { transaction, publicKey: stated }: { transaction: TransactionSubject; publicKey: string },
): Promise<void> {
  const { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
  const readMetadata = () =>
    parseTxMetadata({ chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas })
  const signature = fromHex(transaction.signature.slice(2))

  await run('digest', () => {
    const digest = toPrefixedHex(hashUnsignedTransaction(readMetadata()))
    failIf(digest !== transaction.digestSigned, `The fields of the transaction hash to ${digest}, not to the digest.`)
    return [`The EIP-1559 transaction on chain ${chainId} hashes to ${digest}.`, undefined]
  })

  await run('signature', () => {
    const publicKey = recoverPublicKey(fromHex(transaction.digestSigned.slice(2)), signature)
    const address = toAddress(publicKey)
    failIf(address !== transaction.from, `The signature is of ${address}, not of ${transaction.from}.`)
    failIf(toHex(publicKey) !== stated, 'The signature is of another public key than the receipt states.')
    return [`The signature, with a low s, recovers to ${address}.`, undefined]
  })

  await run('tx-hash', () => {
    const hash = toPrefixedHex(hashSignedTransaction(readMetadata(), signature))
    failIf(hash !== transaction.txHash, `The signed transaction hashes to ${hash}, not to the stated hash.`)
    return [`The signed bytes hash to ${hash}.`, undefined]
  })
}
