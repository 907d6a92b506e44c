import {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  type DrandWitness,
  type EnclaveSettings,
  type EntropyWitness,
  type Hex,
  type SignatureKind,
  type Statement,
  type StatementV2,
  toEventHash,
} from '@countersign/protocol'

type V1 = AttestationReceiptV1

/** Of either version. */
export type AnyReceipt = AttestationReceiptV1 | AttestationReceiptV2

/** How service and chain know a signature: by wallet and hash. The chain is 0 for what is signed off every chain. */
export type SignatureName = { from: Hex; txHash: Hex; chainId: number; signedAt: string }

/** By which name a receipt's signature is known. */
export function nameSignature(receipt: AnyReceipt): SignatureName {
  if (receipt.version === 'countersign-attestation/1') {
    const { from, txHash, chainId, signedAt } = receipt.transaction
    return { from, txHash, chainId, signedAt }
  }
  const { address, signedAt } = receipt.signer.statement
  const chainId = 'chainId' in receipt.subject ? receipt.subject.chainId : 0
  return { from: address, txHash: toEventHash(receipt), chainId, signedAt }
}

/**
 * What the checks read of a receipt of either version, so that a step that both have is one piece of code. A receipt of version 1
 * is such a view as it stands; that of version 2 is put together from its blocks.
 */
export type ReceiptView = {
  /** Undefined in version 1, which has transactions only. */
  kind?: SignatureKind
  transaction: SignatureName
  signer: Pick<V1['signer'], 'quoteHex' | 'inclusion' | 'batch' | 'config' | 'eventLog' | 'collateral'> & {
    statement: Statement | StatementV2
    /** Written out in version 2 alone. */
    settings?: EnclaveSettings
    /** What version 1 repeats of its quote. */
    measurement?: V1['signer']['measurement']
    /** In version 2 there once the quote is verified. */
    tcbStatus?: V1['signer']['tcbStatus']
  }
  coordinator: {
    publicKey: string
    /** The second key, which version 2 has. */
    mlDsa65?: string
    selfAttestation: Pick<
      V1['coordinator']['selfAttestation'],
      'reportHex' | 'certificates' | 'configHash' | 'fetchedAt'
    > & {
      /** What version 1 repeats of its report. */
      measurement?: string
      revocations?: string
    }
  }
  entropy: EntropyWitness | DrandWitness
}
