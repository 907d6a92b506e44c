import { assertStatement, fromHex, hashLeaf, verifyEd25519 } from '@countersign/protocol'
import { failIf, needs, type Transcript } from '../check/steps.ts'
import { toCidHash } from '../cid.ts'
import { hashPart, toReceiptRelease } from './assemble.ts'
import type { AttestationReceiptV1 } from './schema.ts'

/** release: the coordinator released this signature with this evidence. */
export async function checkRelease({ run }: Transcript, receipt: AttestationReceiptV1): Promise<void> {
  const { coordinator, signer, entropy } = receipt
  const { selfAttestation, publicKey } = coordinator

  await run('release', () => {
    const message = toReceiptRelease({
      leaf: hashLeaf(signer.statement),
      collateralHash: fromHex(needs(toCidHash(signer.collateral), 'the receipt names no collateral')),
      selfAttestationHash: hashPart(selfAttestation),
      witness: entropy,
    })
    const isSigned = verifyEd25519(fromHex(publicKey), fromHex(coordinator.release), message)
    failIf(!isSigned, 'The coordinator did not release this statement with this evidence.')
    return ['Its key signed the statement, the collateral, its own report and the sample.', undefined]
  })
}

/** statement: the enclave's statement about the transaction. */
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
