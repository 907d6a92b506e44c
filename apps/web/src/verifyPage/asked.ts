import type { ProofPayload } from '@countersign/protocol'
import type { VerificationSubject } from '../verification/verifySubject.ts'

/** What the visitor asked to have verified, once it is clear what it is. */
export type Asked = {
  subject: VerificationSubject
  /** The service's answer, for a proof link or slug. */
  proof?: ProofPayload
  apiBaseUrl: string
}
