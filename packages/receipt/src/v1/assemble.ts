import type { TcbStatus, TdMeasurement } from '@countersign/attestation'
import {
  type EnclaveConfig,
  type Hex,
  type Statement,
  type TxMetadata,
  toCanonicalJson,
  toReleaseMessage,
} from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type AttestationReceiptV1,
  RECEIPT_SPEC,
  RECEIPT_VERSION,
  type SelfAttestation,
  verificationConstants,
  type Witness,
} from './schema.ts'

export type EvidenceMode = 'hardware' | 'mock'

/** The records from the signing transaction. A receipt depends on nothing else: no clock, key or setting of the worker. */
export type ReceiptRecords = {
  txMetadata: TxMetadata
  statement: Statement
  inclusion: { leafIndex: number; treeSize: number; path: readonly string[] }
  batch: {
    bootId: string
    sequence: number
    previous: string
    mode: EvidenceMode
    quoteHex: string
    quoteVerified: boolean
    measurement: Required<Pick<TdMeasurement, 'mrTd' | 'rtmr0' | 'rtmr1' | 'rtmr2' | 'rtmr3'>>
    tcbStatus: TcbStatus
    config: EnclaveConfig
    eventLog?: string
    /** The CID of the collateral that verified the quote. */
    collateral: string
  }
  coordinator: { mode: EvidenceMode; publicKey: string; selfAttestation: SelfAttestation; release: string }
  witness: Witness
}

/**
 * Creates the receipt of one signature. A pure function: the same records always give the same bytes.
 *
 * @example
 * const bytes = canonicalBytes(assemble(records))
 * const cid = toCid(bytes)
 */
export function assemble(records: ReceiptRecords): AttestationReceiptV1 {
  const { txMetadata, statement, inclusion, batch, coordinator, witness } = records
  return {
    version: RECEIPT_VERSION,
    spec: RECEIPT_SPEC,
    transaction: {
      chainId: txMetadata.chainId,
      txHash: statement.txHash,
      from: statement.address,
      to: toLower(txMetadata.to),
      nonce: txMetadata.nonce,
      value: txMetadata.value,
      data: toLower(txMetadata.data),
      gas: txMetadata.gas,
      maxFeePerGas: txMetadata.maxFeePerGas,
      maxPriorityFeePerGas: txMetadata.maxPriorityFeePerGas,
      digestSigned: statement.digest,
      signature: statement.signature,
      signedAt: statement.signedAt,
    },
    signer: {
      kind: 'tdx',
      mode: batch.mode,
      keyId: statement.keyId,
      publicKey: statement.publicKey,
      quoteHex: batch.quoteHex,
      quoteVerified: batch.quoteVerified,
      measurement: batch.measurement,
      tcbStatus: batch.tcbStatus,
      statement,
      inclusion: { ...inclusion, path: [...inclusion.path] },
      batch: { bootId: batch.bootId, sequence: batch.sequence, previous: batch.previous },
      config: { ...batch.config, issuers: [...batch.config.issuers] },
      ...(batch.eventLog === undefined ? {} : { eventLog: batch.eventLog }),
      collateral: batch.collateral,
    },
    coordinator: {
      kind: 'sev-snp',
      mode: coordinator.mode,
      selfAttestation: coordinator.selfAttestation,
      publicKey: coordinator.publicKey,
      release: coordinator.release,
    },
    entropy: witness,
    verification: {
      instructions: verificationConstants.instructions,
      trustAnchors: {
        ...verificationConstants.trustAnchors,
        amdRootSha256: [...verificationConstants.trustAnchors.amdRootSha256],
      },
    },
    issuedAt: statement.signedAt,
  }
}

/**
 * The message that a coordinator signs to release a signature: the statement's leaf, the collateral that verified the quote, the
 * coordinator's
 * attestation, and the sample. It covers each part of the receipt that the quote doesn't cover, so the worker that assembles the receipt
 * later can't change anything.
 */
export function toReceiptRelease(parts: {
  leaf: Uint8Array
  collateralHash: Uint8Array
  /** `hashPart(selfAttestation)`, which stays the same until the next report. */
  selfAttestationHash: Uint8Array
  witness: Witness
}): Uint8Array<ArrayBuffer> {
  const { witness, ...hashes } = parts
  return toReleaseMessage({ ...hashes, witnessHash: hashPart(witness) })
}

/** SHA-256 of the canonical JSON of a part of a receipt, for releases. */
export function hashPart(part: SelfAttestation | Witness): Uint8Array<ArrayBuffer> {
  return sha256(toCanonicalJson(part))
}

function toLower(hex: Hex): Hex {
  return hex.toLowerCase() as Hex
}
