import { attestationPublishedTopic, type Hex, type ProofPayload } from '@countersign/protocol'
import { type GivenBlocks, nameSignature } from '@countersign/receipt'
import {
  createReceiptSimulator,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
  type SimulatedIssue,
  type SimulatedIssueOptions,
} from '@countersign/receipt/simulator'
import { MANIFEST_VERSION, type Manifest } from '../src/parseManifest.ts'

export const signedAt = new Date('2026-03-01T12:00:00Z')
export const contract: Hex = `0x${'c0'.repeat(20)}`
export const slug = 'q8Zk2vXo1fTn0uYbWcR3dA'
export const publishingTx: Hex = `0x${'77'.repeat(32)}`
export const publishedBlock = 16
const blockHash = `0x${'b1'.repeat(32)}`

export type FakeIssue = Pick<
  SimulatedIssue | SimulatedAttestation,
  'bytes' | 'cid' | 'collateral' | 'receipt' | 'anchors'
> & {
  blocks?: GivenBlocks
}

const simulator = createReceiptSimulator()

export function issue(options: Partial<SimulatedIssueOptions> = {}): Promise<SimulatedIssue> {
  return simulator.issue({ signedAt, ...options })
}

/** The issue with its files in the receipt's `spec/golden`. */
export function issueGolden(options: Partial<SimulatedIssueOptions> = {}): Promise<SimulatedIssue> {
  const golden = { treeSize: 5, leafIndex: 2, batchSequence: 3 }
  return issue({ signedAt: new Date('2026-06-15T12:00:00.123Z'), ...golden, ...options })
}

/** Of version 2, in the same batch. */
export function issueGoldenV2(options: Partial<SimulatedAttestationOptions> = {}): Promise<SimulatedAttestation> {
  const golden = { treeSize: 5, leafIndex: 2, batchSequence: 3 }
  return simulator.issueV2({ signedAt: new Date('2026-06-15T12:00:00.123Z'), ...golden, ...options })
}

/** All anchors for an issue. */
export function toManifest({ anchors }: FakeIssue): Manifest {
  return {
    version: MANIFEST_VERSION,
    enclave: { measurements: anchors.measurements, configHashes: anchors.configHashes },
    coordinator: {
      measurements: anchors.coordinatorMeasurements,
      configHashes: anchors.coordinatorConfigHashes,
      minimumTcb: anchors.coordinatorMinimumTcb,
      chips: anchors.coordinatorChips,
    },
    entropyKeys: anchors.entropyKeys,
    contracts: [{ chainId: 31337, address: contract, fromBlock: 7 }],
  }
}

/** The event of an issue as a node returns it, encoded by hand: offset, length, text. */
export function toLog(
  { receipt, cid }: Pick<FakeIssue, 'receipt' | 'cid'>,
  changes: Readonly<Record<string, unknown>> = {},
) {
  const { from, txHash } = nameSignature(receipt)
  const word = (value: number) => value.toString(16).padStart(64, '0')
  const text = [...cid].map((character) => character.charCodeAt(0).toString(16)).join('')
  return {
    address: contract,
    topics: [attestationPublishedTopic, `0x${from.slice(2).padStart(64, '0')}`, txHash],
    data: `0x${word(32)}${word(cid.length)}${text.padEnd(128, '0')}`,
    blockNumber: `0x${publishedBlock.toString(16)}`,
    blockHash,
    transactionHash: publishingTx,
    removed: false,
    ...changes,
  }
}

/** A node whose chain has the event of an issue, in a block of two seconds after signing. */
export function toChain(issued: FakeIssue, changes: Readonly<Record<string, unknown>> = {}) {
  const { txHash, signedAt } = nameSignature(issued.receipt)
  const seconds = Math.floor(new Date(signedAt).getTime() / 1000) + 2
  return {
    eth_chainId: '0x7a69',
    eth_getLogs: [toLog(issued)],
    eth_getBlockByNumber: { hash: blockHash, timestamp: `0x${seconds.toString(16)}` },
    eth_getTransactionByHash: { hash: txHash, blockNumber: '0xf' },
    ...changes,
  }
}

/** The service's response for a complete proof. It names no gateway. */
export function toProof<Changes extends Readonly<Record<string, unknown>> = Record<never, never>>(
  { receipt, cid }: FakeIssue,
  changes?: Changes,
): ProofPayload & Changes {
  const { txHash, chainId, from, signedAt } = nameSignature(receipt)
  const kind = 'kind' in receipt && receipt.kind !== 'transaction' ? receipt.kind : undefined
  const proof: ProofPayload = {
    slug,
    ...(kind && { kind }),
    txHash,
    chainId,
    walletAddress: from,
    status: 'complete',
    ipfsCid: cid,
    ipfsUrl: null,
    onchainTxHash: publishingTx,
    onchainBlockNumber: publishedBlock,
    kmsQuoteVerified: true,
    // The service sends receipts of either version.
    receipt: receipt as ProofPayload['receipt'],
    createdAt: signedAt,
  }
  return { ...proof, ...changes } as ProofPayload & Changes
}
