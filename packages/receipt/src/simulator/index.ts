export {
  createReceiptSimulator,
  type ReceiptSimulator,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
  type SimulatedIssue,
  type SimulatedIssueOptions,
} from './createReceiptSimulator.ts'
export { createSimulatedLog, type SimulatedLog, type SimulatedLogOptions } from './createSimulatedLog.ts'
export { findRule, type SimulatedApprovalRequest, type SimulatedSigning } from './issueAttestation.ts'
