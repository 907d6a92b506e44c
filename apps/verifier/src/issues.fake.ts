import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attestationPublishedTopic } from '@countersign/protocol'
import { createReceiptSimulator, type SimulatedIssue, type SimulatedIssueOptions } from '@countersign/receipt/simulator'
import { onTestFinished } from 'vitest'

export const signedAt = new Date('2026-03-01T12:00:00Z')
export const contract = `0x${'c0'.repeat(20)}`
export const slug = 'q8Zk2vXo1fTn0uYbWcR3dA'

const simulator = createReceiptSimulator()

export function issue(options: Partial<SimulatedIssueOptions> = {}): Promise<SimulatedIssue> {
  return simulator.issue({ signedAt, ...options })
}

/** The honest service: its receipt is what readers know. */
export const honest = await issue()

/** Options that name every anchor of an issue by itself. */
export function toFlags({ anchors }: SimulatedIssue): string[] {
  return [
    ...anchors.measurements.flatMap(({ mrTd, rtmr0, rtmr1, rtmr2, rtmr3 }) => [
      '--measurement',
      [mrTd, rtmr0, rtmr1, rtmr2, rtmr3].join(':'),
    ]),
    ...anchors.configHashes.flatMap((hash) => ['--config-hash', hash]),
    ...anchors.coordinatorMeasurements.flatMap((hash) => ['--coordinator-measurement', hash]),
    ...anchors.coordinatorConfigHashes.flatMap((hash) => ['--coordinator-config-hash', hash]),
    ...anchors.entropyKeys.flatMap((key) => ['--entropy-key', key]),
  ]
}

export function toManifest({ anchors }: SimulatedIssue) {
  return {
    version: 'countersign-manifest/1',
    enclave: { measurements: anchors.measurements, configHashes: anchors.configHashes },
    coordinator: { measurements: anchors.coordinatorMeasurements, configHashes: anchors.coordinatorConfigHashes },
    entropyKeys: anchors.entropyKeys,
    contracts: [{ chainId: 31337, address: contract, fromBlock: 7 }],
  }
}

/** A new folder with these files; it goes with the test. */
export async function createFolder(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-verifier-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  return folder
}

/** The event of an issue as a node has it, encoded by hand: offset, length, text. */
export function toLog({ receipt, cid }: SimulatedIssue, changes: Readonly<Record<string, unknown>> = {}) {
  const word = (value: number) => value.toString(16).padStart(64, '0')
  const text = Buffer.from(cid, 'latin1').toString('hex').padEnd(128, '0')
  return {
    address: contract,
    topics: [
      attestationPublishedTopic,
      `0x${receipt.transaction.from.slice(2).padStart(64, '0')}`,
      receipt.transaction.txHash,
    ],
    data: `0x${word(32)}${word(cid.length)}${text}`,
    blockNumber: '0x10',
    blockHash: `0x${'b1'.repeat(32)}`,
    removed: false,
    ...changes,
  }
}

/** A node whose chain has the event of an issue, in a block of two seconds after signing. */
export function toChain(issued: SimulatedIssue, changes: Readonly<Record<string, unknown>> = {}) {
  const { txHash, signedAt } = issued.receipt.transaction
  const seconds = Math.floor(new Date(signedAt).getTime() / 1000) + 2
  return {
    eth_chainId: '0x7a69',
    eth_getLogs: [toLog(issued)],
    eth_getBlockByNumber: { hash: `0x${'b1'.repeat(32)}`, timestamp: `0x${seconds.toString(16)}` },
    eth_getTransactionByHash: { hash: txHash, blockNumber: '0xf' },
    ...changes,
  }
}

export function toProof({ receipt, cid }: SimulatedIssue, changes: Readonly<Record<string, unknown>> = {}) {
  const { txHash, chainId, from } = receipt.transaction
  return {
    slug,
    txHash,
    chainId,
    walletAddress: from,
    status: 'complete',
    ipfsCid: cid,
    ipfsUrl: null,
    onchainTxHash: null,
    onchainBlockNumber: null,
    kmsQuoteVerified: true,
    receipt,
    createdAt: '2026-03-01T12:00:00.000Z',
    ...changes,
  }
}
