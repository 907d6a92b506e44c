import type { AttestationPublished, Hex } from '@countersign/protocol'
import fc from 'fast-check'
import { CONFIRM_QUEUE, PUBLISH_QUEUE } from '../../services/coordinator/src/store/jobs.ts'
import type { Snapshot } from '../../services/coordinator/test/proofRows.ts'

/** The effects of the commands so far: the signings, and the reasons that may keep proofs from completing. */
export type Model = ReturnType<typeof createModel>

export function createModel() {
  return {
    /** By wallet and digest. */
    signings: new Map<string, { slug: string; collateral: string }>(),
    /** Slugs of proofs whose publication has reverted or could have. */
    mayRevert: new Set<string>(),
    reverting: new Set<string>(),
    /** Proofs that had an event at some time. The contract can't revert such a call later. */
    wasPublished: new Set<string>(),
    /** Jobs lost since the last sweep. */
    lost: { pins: new Set<string>(), [PUBLISH_QUEUE]: false, [CONFIRM_QUEUE]: false },
    feeGwei: 1,
    /** The newest block whose base fee may have been too high. */
    dearBlock: -1,
    hadDeepReorg: false,
    isEmpty: false,
    /** Places of logs with another publisher. */
    rotated: new Set<number>(),
    /** Whether a worker has published signatures with a log entry as events. */
    hadEvents: false,
    /** By id in the contract: the largest size of a checkpoint that was on the chain at some time. */
    covered: new Map<Hex, number>(),
    /** Transactions of other publishers' checkpoints. */
    foreign: new Set<Hex>(),
    /** The tables as last read. */
    seen: { proofs: [], publications: [], jobs: [] } as Snapshot,
  }
}

/** An invariant of the specification doesn't hold. */
class BrokenLifeError extends Error {
  override name = 'BrokenLifeError'
}

export function assert(condition: boolean, rule: string, details?: unknown): asserts condition {
  if (!condition) throw new BrokenLifeError(details === undefined ? rule : `${rule}: ${fc.stringify(details)}`)
}

/** Identifies the event of a proof. */
export function toKey({ wallet, txHash }: Pick<AttestationPublished, 'wallet' | 'txHash'>): string {
  return `${wallet}/${txHash}`.toLowerCase()
}
