import {
  type AttestationReceiptV2,
  type AuthorizationSubject,
  assertAuthorizationAllowed,
  assertStatementV2,
  type EnclaveSettings,
  fromHex,
  hashAuthorization,
  hashSubject,
  type StatementV2,
  toAddress,
  toHex,
} from '@countersign/protocol'
import { checkTransaction } from '../v1/checkTransaction.ts'
import { failIf, type Transcript } from '../v1/transcript.ts'
import { checkOpening, refuseOpening } from './checkOpening.ts'
import { checkSignature } from './checkSignature.ts'

/** opening → digest → signature → tx-hash → statement: what was signed, as its kind has it, and what the enclave said of it. */
export async function checkSubject(
  transcript: Transcript,
  receipt: AttestationReceiptV2,
  { settings, opening }: { settings: EnclaveSettings | undefined; opening: Uint8Array | undefined },
): Promise<void> {
  const { statement } = receipt.signer
  if (receipt.kind === 'off-chain') {
    await checkOpening(transcript, { commitment: receipt.subject.commitment, statement, opening })
  } else {
    if (opening !== undefined) await refuseOpening(transcript)
    if (receipt.kind === 'transaction') {
      await checkTransaction(transcript, { transaction: receipt.subject, publicKey: statement.publicKey })
    } else {
      await checkAuthorization(transcript, receipt.subject, { statement, settings })
    }
  }

  await transcript.run('statement', () => {
    assertStatementV2(statement)
    const pairs: [string, unknown, unknown][] = [
      ['kind', statement.kind, receipt.kind],
      ['subject', statement.subject, toHex(hashSubject(receipt.subject))],
      ['address', statement.address, toAddress(fromHex(statement.publicKey))],
      ['time of issue', statement.signedAt, receipt.issuedAt],
    ]
    if (receipt.kind === 'transaction') {
      pairs.push(['address', statement.address, receipt.subject.from])
      pairs.push(['time of signing', statement.signedAt, receipt.subject.signedAt])
    }
    for (const [what, said, stated] of pairs) failIf(said !== stated, `The statement has another ${what}.`)
    const isUnruled = statement.policy === null && statement.approvals === null
    failIf(!isUnruled, 'The statement names a policy or approvals, which this receipt does not carry.')
    return [`Key ${statement.keyId} signed at ${statement.signedAt}: ${receipt.kind}.`, undefined]
  })
}

async function checkAuthorization(
  { run }: Transcript,
  { signature, digest: stated, ...authorization }: AuthorizationSubject,
  { statement, settings }: { statement: StatementV2; settings: EnclaveSettings | undefined },
): Promise<void> {
  await run('digest', () => {
    const digest = `0x${toHex(hashAuthorization(authorization))}`
    failIf(digest !== stated, `The fields of the authorization hash to ${digest}, not to the digest.`)
    // What the enclave may sign is under its quote: an authorization of other code is none that its settings allow.
    if (settings !== undefined) assertAuthorizationAllowed(authorization, settings.implementations)
    return [
      `The EIP-7702 authorization of ${authorization.address} on chain ${authorization.chainId} hashes to ${digest}.`,
      undefined,
    ]
  })
  await run('signature', () => [checkSignature({ digest: stated, signature, statement }), undefined])
}
