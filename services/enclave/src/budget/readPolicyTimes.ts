import { readQuorumTimes } from '@countersign/log/core'
import type { PolicyLog } from '@countersign/policy/core'

/** The times that the witnesses of a policy tell, in seconds. 0 without a quorum of them. */
export function readPolicyTimes(
  cosignatures: readonly { witness: string; timestampS: number }[],
  log: PolicyLog,
): ReturnType<typeof readQuorumTimes> {
  const own = cosignatures.filter(({ witness }) => log.witnesses.includes(witness))
  return readQuorumTimes(own, log)
}
