import {
  assertStatement,
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
import type { AttestationReceiptV1 } from './schema.ts'
import { failIf, type Transcript } from './transcript.ts'

/** digest → signature → tx-hash: the transaction, which both versions have in one form. `publicKey` is whose it is said to be. */
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

/** statement: what the enclave said of the transaction. */
export async function checkStatement({ run }: Transcript, receipt: AttestationReceiptV1): Promise<void> {
  const { transaction, signer } = receipt
  const { statement } = signer
  await run('statement', () => {
    assertStatement(statement)
    const pairs: [string, unknown, unknown][] = [
      ['key id', statement.keyId, signer.keyId],
      ['address', statement.address, transaction.from],
      ['public key', statement.publicKey, signer.publicKey],
      ['digest', statement.digest, transaction.digestSigned],
      ['signature', statement.signature, transaction.signature],
      ['transaction hash', statement.txHash, transaction.txHash],
      ['chain', statement.chainId, transaction.chainId],
      ['time of signing', statement.signedAt, transaction.signedAt],
      ['time of issue', statement.signedAt, receipt.issuedAt],
    ]
    for (const [what, said, stated] of pairs) failIf(said !== stated, `The statement has another ${what}.`)
    return [`Key ${statement.keyId} signed at ${statement.signedAt}.`, undefined]
  })
}
