import type { AttestationPublished } from '@countersign/protocol'
import fc from 'fast-check'
import { CONFIRM_QUEUE, PUBLISH_QUEUE } from '../../services/coordinator/src/store/jobs.ts'
import type { Snapshot } from '../../services/coordinator/test/proofRows.ts'

/** What is known of a sequence from its commands: what was signed, and what may keep it from becoming complete. */
export type Model = ReturnType<typeof createModel>

export function createModel() {
  return {
    /** By wallet and digest. */
    signings: new Map<string, { slug: string; collateral: string }>(),
    /** Slugs of proofs whose publication has reverted at some time, or could have. */
    mayRevert: new Set<string>(),
    reverting: new Set<string>(),
    /** Had an event at some time. The contract has no second thoughts: such a call does not begin to revert. */
    wasPublished: new Set<string>(),
    /** Jobs that were given up since the last sweep. */
    lost: { pins: new Set<string>(), [PUBLISH_QUEUE]: false, [CONFIRM_QUEUE]: false },
    feeGwei: 1,
    /** The newest block that may have cost too much. */
    dearBlock: -1,
    hadDeepReorg: false,
    /** The tables, as they were read last. */
    seen: { proofs: [], publications: [], jobs: [] } as Snapshot,
  }
}

/** What the specification promises does not hold. */
class BrokenLifeError extends Error {
  override name = 'BrokenLifeError'
}

export function assert(condition: boolean, rule: string, details?: unknown): asserts condition {
  if (!condition) throw new BrokenLifeError(details === undefined ? rule : `${rule}: ${fc.stringify(details)}`)
}

/** One for each event and each proof. */
export function toKey({ wallet, txHash }: Pick<AttestationPublished, 'wallet' | 'txHash'>): string {
  return `${wallet}/${txHash}`.toLowerCase()
}
