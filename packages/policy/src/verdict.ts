import type { PolicyRefusal } from '@countersign/protocol'
import type { PolicyLog } from './policy.ts'

export type PolicyVerdict =
  | {
      allowed: true
      /** The rule that matches and asks for the fewest approvals. */
      rule: number
      approvals: number
      /** What must have cosigned the log before the signature is released. */
      log: PolicyLog | null
    }
  | ({ allowed: false } & PolicyRefusal)
