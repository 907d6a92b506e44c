import {
  type Approval,
  type AttestationReceiptV2,
  type BatchBlock,
  type CoordinatorBlock,
  fromHex,
  type ReleaseBlock,
  type Signed,
  type StatementV2,
  toHex,
  toReleaseMessageV2,
} from '@countersign/protocol'
import { toCidHash } from '../cid.ts'
import { ReceiptError } from '../errors.ts'
import { ATTESTATION_V2 } from './blocks.ts'

/* Creates blocks from the records of the signing transaction. Pure functions: no clock, key or setting of the worker. */

/** The block of a quote. */
export function assembleBatch(record: Omit<BatchBlock, 'version'>): BatchBlock {
  const { eventLog, logKey, ...members } = record
  return {
    version: 'countersign-batch/2',
    ...members,
    ...(eventLog !== undefined && { eventLog }),
    ...(logKey !== undefined && { logKey }),
  }
}

/** The block of a coordinator's attestation. */
export function assembleCoordinator(record: Omit<CoordinatorBlock, 'version'>): CoordinatorBlock {
  const { revocations, ...members } = record
  return { version: 'countersign-coordinator/2', ...members, ...(revocations === undefined ? {} : { revocations }) }
}

/** The CIDs of the released blocks. */
export type ReleaseCids = Pick<ReleaseBlock, 'batch' | 'collateral' | 'coordinator'>

/** The message that a coordinator signs twice to release a batch: the hashes in these CIDs. */
export function toBlockRelease({ batch, collateral, coordinator }: ReleaseCids): Uint8Array<ArrayBuffer> {
  return toReleaseMessageV2({
    batchHash: hashNamed(batch),
    collateralHash: hashNamed(collateral),
    coordinatorHash: hashNamed(coordinator),
  })
}

/** The block of a release, with both signatures over `toBlockRelease`. */
export function assembleRelease(
  record: ReleaseCids & { signatures: { ed25519: Uint8Array; mlDsa65: Uint8Array } },
): ReleaseBlock {
  const { batch, collateral, coordinator, signatures } = record
  return {
    version: 'countersign-release/2',
    batch,
    collateral,
    coordinator,
    signatures: [
      { alg: 'Ed25519', value: toHex(signatures.ed25519) },
      { alg: 'ML-DSA-65', value: toHex(signatures.mlDsa65) },
    ],
  }
}

export type AttestationRecords = {
  signed: Signed
  statement: StatementV2
  inclusion: { leafIndex: number; path: readonly string[] }
  /** CID of the batch block. */
  batch: string
  /** CID of the release block. */
  release: string
  entropy: AttestationReceiptV2['entropy']
  /** CID of the policy block, if a vault signed. */
  policy?: string | undefined
  /** For a vault's transaction or revocation. The approvals of off-chain kinds are only in the opening. */
  approvals?: readonly Approval[] | undefined
  /** The proof that the signature's entry is in the log, if the settings have one: `formatTlogProof`, without extra data. */
  log?: string | undefined
}

/** The receipt of one signature. */
export function assembleAttestation(records: AttestationRecords): AttestationReceiptV2 {
  const { signed, statement, inclusion, batch, release, entropy, policy, approvals, log } = records
  return {
    version: ATTESTATION_V2,
    ...signed,
    signer: { statement, inclusion: { leafIndex: inclusion.leafIndex, path: [...inclusion.path] }, batch },
    coordinator: { release },
    entropy,
    ...(policy !== undefined && { policy }),
    ...(approvals !== undefined && { approvals }),
    ...(log !== undefined && { log }),
    issuedAt: statement.signedAt,
  }
}

function hashNamed(cid: string): Uint8Array<ArrayBuffer> {
  const hash = toCidHash(cid)
  if (hash === undefined)
    throw new ReceiptError('receipt_malformed', 'malformed receipt', { details: 'not a CID of a receipt or block' })
  return fromHex(hash)
}
