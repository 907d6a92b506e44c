import type { ProofPayload } from '@countersign/protocol'
import type { VerifyRequest } from '@countersign/verify'

/** What the visitor asked to have verified, once it is clear what it is. */
export type Asked = Pick<VerifyRequest, 'subject' | 'collaterals' | 'opening'> & {
  /** The service's answer, for a proof link or slug. */
  proof?: ProofPayload
  apiBaseUrl: string
}
