import { readQuorumTimes } from '@countersign/log/core'
import type { PolicyLog } from '@countersign/policy/core'

/** The time that has passed by the clocks of a policy's witnesses, in seconds. 0 without a quorum of them. */
export function readPassedS(cosignatures: readonly { witness: string; timestampS: number }[], log: PolicyLog): number {
  const counted = cosignatures.filter(({ witness }) => log.witnesses.includes(witness))
  return readQuorumTimes(counted, log).passedS
}
