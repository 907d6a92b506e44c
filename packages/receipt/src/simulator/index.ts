export {
  createReceiptSimulator,
  type ReceiptSimulator,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
  type SimulatedIssue,
  type SimulatedIssueOptions,
} from './createReceiptSimulator.ts'
export type { SimulatedSigning } from './issueAttestation.ts'
