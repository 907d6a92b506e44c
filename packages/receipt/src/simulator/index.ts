export {
  createReceiptSimulator,
  type ReceiptSimulator,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
  type SimulatedIssue,
  type SimulatedIssueOptions,
} from './createReceiptSimulator.ts'
export type { SimulatedApprovalRequest, SimulatedSigning } from './issueAttestation.ts'
