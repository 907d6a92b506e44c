export {
  createReceiptSimulator,
  type ReceiptSimulator,
  type SimulatedIssue,
  type SimulatedIssueOptions,
} from './createReceiptSimulator.ts'
export type { SimulatedAttestation, SimulatedAttestationOptions, SimulatedSigning } from './issueAttestation.ts'
