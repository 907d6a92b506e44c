import { assertStatement } from '@countersign/protocol'
import { failIf, type Transcript } from '../check/transcript.ts'
import type { AttestationReceiptV1 } from './schema.ts'

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
