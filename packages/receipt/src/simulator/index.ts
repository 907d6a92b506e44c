export {
  createReceiptSimulator,
  type ReceiptSimulator,
  type SimulatedIssue,
  type SimulatedIssueOptions,
} from './createReceiptSimulator.ts'
