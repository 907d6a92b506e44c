import type { Approval } from './approval.ts'
import type { EnclaveConfig } from './configHash.ts'
import type { DrandWitness } from './drand.ts'
import type { EntropyWitness } from './entropy.ts'
import type { EnclaveSettings } from './settings.ts'
import type { StatementV2 } from './statementV2.ts'
import type { Signed } from './subject.ts'

/*
 * The blocks of a receipt of version 2: `packages/receipt/spec/receipt-v2.md` describes each member and its checks. Each block is canonical
 * JSON of at most `MAX_BLOCK_BYTES`. Blocks refer to each other by CID.
 */

/** The size of an IPFS block that every node accepts. */
export const MAX_BLOCK_BYTES = 262_144

/** One per quote: the quote, and the other values that its report data covers. */
export type BatchBlock = {
  version: 'countersign-batch/2'
  quoteHex: string
  eventLog?: string | undefined
  config: EnclaveConfig
  /** In full. The configuration has only their hash. */
  settings: EnclaveSettings
  bootId: string
  sequence: number
  previous: string
  treeSize: number
  /** Present if the settings have a log: the verifier key (`name+id+key`) of the one that this boot wrote to. */
  logKey?: string | undefined
}

/** One per attestation of a coordinator: its SEV-SNP report over both of its keys. */
export type CoordinatorBlock = {
  version: 'countersign-coordinator/2'
  reportHex: string
  certificates: { ek: string; ask: string; ark: string }
  /** The vendor's revocation list at that time, DER in hex. */
  revocations?: string | undefined
  configHash: string
  keys: { ed25519: string; mlDsa65: string }
  /** ISO 8601. */
  fetchedAt: string
}

/** One per batch and coordinator: both signatures over the three blocks that it refers to. */
export type ReleaseBlock = {
  version: 'countersign-release/2'
  batch: string
  collateral: string
  coordinator: string
  signatures: readonly [{ alg: 'Ed25519'; value: string }, { alg: 'ML-DSA-65'; value: string }]
}

/** One per signature: the receipt itself. */
export type AttestationReceiptV2 = {
  version: 'countersign-attestation/2'
  signer: {
    statement: StatementV2
    /** The batch has the size of the tree. */
    inclusion: { leafIndex: number; path: readonly string[] }
    /** CID of the batch. */
    batch: string
  }
  coordinator: {
    /** CID of the release. */
    release: string
  }
  entropy: EntropyWitness | DrandWitness
  /** CID of the policy block, for a vault's signature or address. Never for an authorization. */
  policy?: string | undefined
  /** For a vault's transaction or revocation with approvals. The approvals of off-chain kinds are in the opening. */
  approvals?: readonly Approval[] | undefined
  /** Present if the settings have a log: a cosigned proof (c2sp.org/tlog-proof) that the signature's entry is in it. */
  log?: string | undefined
  /** Equals `signedAt`. */
  issuedAt: string
} & Signed
