import { canTellTime, type Policy } from '@countersign/policy'
import type { EntropySetting } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'

/** Refuses a policy whose vault this service could never sign for: what is sent to its address would be locked in. Throws `invalid_policy`. */
export function assertSignable(policy: Policy, entropySources: readonly EntropySetting[]): void {
  if (!canTellTime(policy, entropySources)) throw unsupported('time names no source that this service takes samples of')
}

function unsupported(details: string) {
  return new CoordinatorError('invalid_policy', 'this service could never sign for the vault', { details })
}
