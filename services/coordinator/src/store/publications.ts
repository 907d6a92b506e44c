import type { AttestationPublished, Hex } from '@countersign/protocol'
import type { Kysely } from 'kysely'
import { claim, failDue, failOverdue, findDue, findNextNonce, sumGas } from './claimPublication.ts'
import { guard } from './databaseError.ts'
import type { Jobs } from './jobs.ts'
import { addTransaction, findOpen, findProofs, findUnsent, markSent } from './openPublications.ts'
import { confirm, fail, finish, lose, move, type Reverted, revert } from './settlePublication.ts'
import type { Tables } from './tables.ts'
import type {
  ClaimParameters,
  DueProof,
  MinedAt,
  OpenPublication,
  PublicationTransaction,
  PublishFailure,
  UnsentTransaction,
} from './types.ts'

/**
 * What the publish and confirm stages read and write. Every move is conditional on the state that the caller saw, and returns
 * whether it was made. Failures of the database itself throw `database_unavailable`.
 */
export type PublicationStore = {
  /** In the order in which they were pinned; 200 at most. */
  findDue(): Promise<DueProof[]>
  /** One more than the highest that was ever stored, or 0. */
  findNextNonce(parameters: { chainId: number; account: Hex }): Promise<number>
  /** Gas limits of publications that were created since then. Of the transactions of one nonce one is mined, so one counts. */
  sumGas(parameters: { chainId: number; account: Hex; since: number }): Promise<bigint>
  /**
   * One transaction: the nonce, the proofs, the signed bytes and the job that confirms them. Returns false, and does nothing, where
   * the nonce or one of the proofs has been claimed by another.
   */
  claim(parameters: ClaimParameters): Promise<boolean>
  /** `pending_onchain` → `onchain_failed`, if no publication has it. */
  failDue(parameters: { slug: string; failure: PublishFailure }): Promise<boolean>
  /** `pending_onchain` → `onchain_failed` for what was pinned before and is in no publication; returns how many. */
  failOverdue(parameters: { pinnedBefore: number; slugs?: readonly string[] | undefined }): Promise<number>

  /** Pending and confirmed, by nonce. */
  findOpen(chainId: number): Promise<OpenPublication[]>
  /** Of pending publications that no node has taken, by nonce: the newest transaction of each. */
  findUnsent(parameters: { chainId: number; account: Hex }): Promise<UnsentTransaction[]>
  /** What its events must say. */
  findProofs(id: number): Promise<AttestationPublished[]>
  /** Adds a replacement, if the publication still has that status; false too where these very bytes are stored. */
  addTransaction(parameters: {
    id: number
    status: OpenPublication['status']
    transaction: PublicationTransaction
    now: number
  }): Promise<boolean>
  markSent(parameters: { hash: Hex; now: number }): Promise<void>

  /** pending → confirmed, its proofs → `complete`. */
  confirm(parameters: { id: number } & MinedAt): Promise<boolean>
  /** A confirmed one is in another block now, or by another of its transactions; its proofs say so too. */
  move(parameters: { id: number } & MinedAt): Promise<boolean>
  /** confirmed → final. */
  finish(parameters: { id: number }): Promise<boolean>
  /** pending → reverted. Several proofs are due again, in halves; a single one → `onchain_failed`, unless its account may not publish. */
  revert(parameters: Reverted): Promise<boolean>
  /** pending → reverted or cancelled, all its proofs → `onchain_failed`. */
  fail(
    parameters: { id: number; status: 'reverted' | 'cancelled'; failure: PublishFailure } & MinedAt,
  ): Promise<boolean>
  /** pending → lost: its nonce was used by another sender, for good. Its proofs are due again. */
  lose(parameters: { id: number }): Promise<boolean>
}

/** Publications on an open database. */
export function createPublicationStore({ db, jobs }: { db: Kysely<Tables>; jobs: Jobs }): PublicationStore {
  return {
    findDue: guard(() => findDue(db)),
    findNextNonce: guard((parameters) => findNextNonce(db, parameters)),
    sumGas: guard((parameters) => sumGas(db, parameters)),
    claim: guard((parameters) => claim({ db, jobs }, parameters)),
    failDue: guard((parameters) => failDue(db, parameters)),
    failOverdue: guard((parameters) => failOverdue(db, parameters)),
    findOpen: guard((chainId) => findOpen(db, chainId)),
    findUnsent: guard((parameters) => findUnsent(db, parameters)),
    findProofs: guard((id) => findProofs(db, id)),
    addTransaction: guard((parameters) => addTransaction(db, parameters)),
    markSent: guard((parameters) => markSent(db, parameters)),
    confirm: guard((parameters) => confirm(db, parameters)),
    move: guard((parameters) => move(db, parameters)),
    finish: guard((parameters) => finish(db, parameters)),
    revert: guard((parameters) => revert({ db, jobs }, parameters)),
    fail: guard((parameters) => fail(db, parameters)),
    lose: guard((parameters) => lose({ db, jobs }, parameters)),
  }
}
