import type { Policy } from '@countersign/policy'
import type {
  Approval,
  Authorization,
  Hex,
  MessageContent,
  Opening,
  SignedBatch,
  SignedStatement,
  SignItem,
  TxMetadata,
  TypedData,
} from '@countersign/protocol'
import type { Progress } from '../gather.ts'
import type { AnyWitness, StoredPolicy } from '../store/types.ts'
import type { ExpectedItem } from './checkItem.ts'

/** What is to be signed, parsed; `digest` is that of the rest. */
export type Asked = { digest: Hex } & (
  | { kind: 'transaction'; txMetadata: TxMetadata }
  | { kind: 'authorization'; authorization: Authorization }
  | { kind: 'message'; content: MessageContent }
  | { kind: 'typed-data'; content: TypedData }
  /** A statement about the address of the wallet; the digest is that of its subject. */
  | { kind: 'address' }
)

/** One signing that a signed-in user asked for. */
export type SigningRequest = {
  sid: string
  grant: string
  keyId: string
  walletId: string
  address: Hex
  /** Where the wallet is a vault: its policy, the same parsed, and who approves. */
  vault?: { policy: StoredPolicy; rules: Policy; approvals?: readonly Approval[] | undefined } | undefined
  asked: Asked
}

/** The opening is of what is signed off the chain. It is not kept. For an address nothing is signed. */
export type SigningResult = { signature: Hex | null; slug: string; opening?: Opening }

export type SignProgress = Progress<SigningRequest, SigningResult>

/** A request with its sample, as it goes to the enclave. */
export type Sending = { request: SigningRequest; item: SignItem; witness: AnyWitness }

/** A request whose statement is a leaf of a batch. The statement itself comes along only where nothing is logged. */
export type Placing = Sending & {
  expected: ExpectedItem
  batch: SignedBatch
  leafIndex: number
  stated?: SignedStatement
}

export function failed(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}
