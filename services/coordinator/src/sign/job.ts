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
  Statement,
  StatementV2,
  TxMetadata,
} from '@countersign/protocol'
import type { Progress } from '../store/gather.ts'
import type { StoredPolicy } from '../store/vaults.ts'
import type { VerifiedBatch } from './checkBatch.ts'
import type { SignatureClaim } from './checkSignatures.ts'
import type { SignContent } from './contents.ts'

/** One signature that a signed-in user asked for. It is one object from the route to the answer, and gains members at each step. */
export type SignJob<Gained extends keyof Gains = never> = {
  sid: string
  grant: string
  keyId: string
  walletId: string
  address: Hex
  /** Where the wallet is a vault: its policy, the same parsed, and its approvals. */
  vault?: { policy: StoredPolicy; rules: Policy; approvals?: readonly Approval[] | undefined } | undefined
  asked: SignContent
} & Pick<Gains, Gained>

/** The members that a job gains, in their order. */
type Gains = {
  sample: AnyWitness
  item: SignItem
  leaf: BatchLeaf
  time: SignTime
  checked: CheckedItem
  verified: VerifiedBatch
  /** Where the enclave has a log: the entry, and the cosigned note that covers it. */
  log: { origin: string; index: number; note: string } | undefined
}

/** A statement's place in a batch. An enclave with a log answers before the quote is made, and holds the statement itself back. */
export type BatchLeaf = {
  batch: OpenBatch | SignedBatch
  index: number
  /** Empty if the batch has no such leaf. */
  hash: string
  statement?: SignedStatement | undefined
  call: SignCall
}

/** The call of the enclave that signed. */
export type SignCall = { coordinatorKey: string; beganAt: number; endedAt: number }

/** When it was signed: by its log entry, or by its statement. */
type SignTime = { signedAtMs: number; entryIndex: number | undefined }

/** What a signing of either version states, as far as it is stored. */
type Stated =
  | { version: 1; statement: Statement; txMetadata: TxMetadata }
  | { version: 2; statement: StatementV2; signed: Signed; approvals?: readonly Approval[] }

/** An item that was signed, and what is still to be checked of it. `opening` goes to the caller and nowhere else. For an address nothing is signed. */
export type CheckedItem = { stated: Stated; claim: SignatureClaim | undefined; opening?: Opening }

/** The opening is of an off-chain signature. It is not stored. An address has no signature. */
export type SignResult = { signature: Hex | null; slug: string; opening?: Opening }

export type SignProgress = Progress<SignJob, SignResult>

/** Grant, session secret, sample and names of one item. */
const ITEM_BYTES = 3_072
/** A transaction at its largest, with its digest and without its data. */
const TRANSACTION_BYTES = 768

/** The most that a job takes in a call to the enclave; and about the size of its statement, which repeats the content. */
export function countBytes({ asked, vault }: Pick<SignJob, 'asked' | 'vault'>): number {
  const { policy, approvals } = vault ?? {}
  const contentBytes =
    asked.kind === 'transaction' ? TRANSACTION_BYTES + asked.txMetadata.data.length : countJson(asked)
  return ITEM_BYTES + contentBytes + (policy === undefined ? 0 : countJson({ policy, approvals }))
}

const countJson = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
