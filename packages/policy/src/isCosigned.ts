import type { PolicyLog } from './policy.ts'

/** Whether enough of a policy's own witnesses are among those that cosigned the log. Other witnesses count for nothing. */
export function isCosigned(log: PolicyLog | null, cosigners: readonly string[]): boolean {
  if (log === null) return true
  return log.witnesses.filter((witness) => cosigners.includes(witness)).length >= log.quorum
}
