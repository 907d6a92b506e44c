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

/** A receipt of either version. */
export type AnyReceipt = AttestationReceiptV1 | AttestationReceiptV2

/** Identifies a signature for service and chain: by wallet and hash. The chain is 0 for an off-chain signature. */
export type SignatureName = { from: Hex; txHash: Hex; chainId: number; signedAt: string }

/** The identification of a receipt's signature. */
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
 * The values of a receipt of either version that the checks use, so that steps of both versions share their code. A receipt of version 1 has
 * this form. For version 2 it is assembled from the blocks.
 */
export type ReceiptView = {
  /** Undefined in version 1, which has transactions only. */
  kind?: SignatureKind
  transaction: SignatureName
  signer: Pick<V1['signer'], 'quoteHex' | 'inclusion' | 'batch' | 'config' | 'eventLog' | 'collateral'> & {
    statement: Statement | StatementV2
    /** Only in version 2, in full. */
    settings?: EnclaveSettings
    /** Values of the quote that version 1 repeats. */
    measurement?: V1['signer']['measurement']
    /** In version 2, set after the quote is verified. */
    tcbStatus?: V1['signer']['tcbStatus']
  }
  coordinator: {
    publicKey: string
    /** The second key, only in version 2. */
    mlDsa65?: string
    selfAttestation: Pick<
      V1['coordinator']['selfAttestation'],
      'reportHex' | 'certificates' | 'configHash' | 'fetchedAt'
    > & {
      /** Values of the report that version 1 repeats. */
      measurement?: string
      revocations?: string
    }
  }
  entropy: EntropyWitness | DrandWitness
}
