import type {
  AttestationReceiptV1,
  DrandWitness,
  EnclaveSettings,
  EntropyWitness,
  Hex,
  SignatureKind,
  Statement,
  StatementV2,
} from '@countersign/protocol'

type V1 = AttestationReceiptV1

/**
 * What the checks read of a receipt of either version, so that a step that both have is one piece of code. A receipt of version 1
 * is such a view as it stands; that of version 2 is put together from its blocks.
 */
export type ReceiptView = {
  /** Undefined in version 1, which has transactions only. */
  kind?: SignatureKind
  /** How the chain knows the signature: by wallet and hash. */
  transaction: { from: Hex; txHash: Hex; chainId: number; signedAt: string }
  signer: Pick<V1['signer'], 'quoteHex' | 'inclusion' | 'batch' | 'config' | 'eventLog' | 'collateral'> & {
    statement: Statement | StatementV2
    /** Written out in version 2 alone. */
    settings?: EnclaveSettings
    /** What version 1 repeats of its quote. */
    measurement?: V1['signer']['measurement']
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
