import type { Policy } from '@countersign/policy'
import type {
  AnyWitness,
  Approval,
  Hex,
  OpenBatch,
  Opening,
  Signed,
  SignedBatch,
  SignedStatement,
  SignItem,
  Stamp,
  Statement,
  StatementV2,
  TxMetadata,
} from '@countersign/protocol'
import type { Progress } from '../store/gather.ts'
import type { StoredPolicy } from '../store/vaults.ts'
import type { VerifiedBatch } from './checkBatch.ts'
import type { SignatureClaim } from './checkSignatures.ts'
import type { Access, SignContent } from './contents.ts'

/** One requested signature. The same object goes from the route to the answer and gains members at each step. */
export type SignJob<Gained extends keyof Gains = never> = Access & {
  keyId: string
  walletId: string
  address: Hex
  /** For a vault: its policy as text and parsed, the index of the rule that is to allow this, and the approvals. */
  vault?:
    | { policy: StoredPolicy; rules: Policy; rule?: number | undefined; approvals?: readonly Approval[] | undefined }
    | undefined
  /** The browser's signature over this request. */
  stamp?: Stamp | undefined
  content: SignContent
} & Pick<Gains, Gained>

/** The members that a job gains, in order. */
type Gains = {
  sample: AnyWitness
  item: SignItem
  leaf: BatchLeaf
  time: SignTime
  checked: CheckedItem
  verified: VerifiedBatch
  /** With a log: the entry, and the cosigned note that covers it. */
  log: { origin: string; index: number; note: string } | undefined
}

/** A statement's place in a batch. An enclave with a log answers before it has the quote, and withholds the statement. */
export type BatchLeaf = {
  batch: OpenBatch | SignedBatch
  index: number
  /** Empty if the batch doesn't contain the leaf. */
  hash: string
  statement?: SignedStatement | undefined
  call: SignCall
}

/** The call to the enclave that signed. */
export type SignCall = { coordinatorKey: string; beganAt: number; endedAt: number }

/** The signing time, from the log entry or from the statement. */
type SignTime = { signedAtMs: number; entryIndex: number | undefined }

/** The parts of a statement that are stored, for both versions. */
type Stated =
  | { version: 1; statement: Statement; txMetadata: TxMetadata }
  | { version: 2; statement: StatementV2; signed: Signed; approvals?: readonly Approval[] }

/** A signed item, and the signature that remains to be checked. `opening` goes only to the caller. An address has no signature to check. */
export type CheckedItem = { stated: Stated; claim: SignatureClaim | undefined; opening?: Opening }

/** `opening` belongs to an off-chain signature and is never stored. An address has no signature. */
export type SignResult = { signature: Hex | null; slug: string; opening?: Opening }

export type SignProgress = Progress<SignJob, SignResult>

/** Grant, session secret, sample and names of one item. */
const ITEM_BYTES = 3_072
/** The largest transaction with its digest, without its data. */
const TRANSACTION_BYTES = 768

/** An upper bound for a job's size in a call to the enclave. Also roughly the size of its statement, which repeats the content. */
export function countBytes({ content, vault }: Pick<SignJob, 'content' | 'vault'>): number {
  const { policy, approvals } = vault ?? {}
  const contentBytes =
    content.kind === 'transaction' ? TRANSACTION_BYTES + content.txMetadata.data.length : countJson(content)
  return ITEM_BYTES + contentBytes + (policy === undefined ? 0 : countJson({ policy, approvals }))
}

const countJson = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
