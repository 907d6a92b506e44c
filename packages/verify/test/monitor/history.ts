import { createSimulatedSatellite, createSimulator, developmentSeed } from '@countersign/attestation/simulator'
import { createInclusionProof, formatTlogProof, hashLogEntry, type ReadNode } from '@countersign/log'
import {
  type AttestationReceiptV2,
  computeTdxReportData,
  createInclusionPaths,
  fromHex,
  hashEnclaveConfig,
  hashLeaf,
  hashSignedTransaction,
  hashSubject,
  hashTree,
  hashTreeNode,
  hashUnsignedTransaction,
  hashWitness,
  type Signed,
  type StatementV2,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import {
  assembleAttestation,
  assembleBatch,
  assembleRelease,
  encodeBlock,
  parseBlock,
  toBlockRelease,
  toCid,
} from '@countersign/receipt'
import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js'
import { issueGoldenV2, signedAt } from '../issues.ts'
import { createFakeLog, type FakeLog, origin } from './log/log.ts'

type LoggedReceipt = { receipt: AttestationReceiptV2; bytes: Uint8Array<ArrayBuffer>; cid: string }

/** All signatures of a wallet, with its log, and the blocks that its receipts name. */
export type History = {
  log: FakeLog
  template: SimulatedAttestation
  receipts: readonly LoggedReceipt[]
  /** The shared blocks. */
  blocks: readonly Uint8Array[]
}

/** The maximum size of a batch. */
const BATCH = 256
/** Every tenth is a message. */
const isMessage = (index: number) => index % 10 === 9
const bytesOf = (name: string) => sha256(new TextEncoder().encode(name))

/**
 * The receipts of this many signatures of the simulated service, in batches that share a quote and a checkpoint like real ones. The receipt
 * simulator makes one at a time, each with separate evidence.
 */
export async function createHistory(count: number): Promise<History> {
  const plain = { treeSize: 1, leafIndex: 0, batchSequence: 0 }
  const template = await issueGoldenV2({ ...plain, signedAt, log: { origin } })
  const log = createFakeLog()
  log.append({
    kind: 'boot',
    bootId: 'b0'.repeat(16),
    configHash: template.anchors.configHashes[0] as string,
    timeMs: signedAt.getTime() - 1,
  })
  const leaves = log.entries.map(hashLogEntry)
  const readNode = createNodeReader(leaves)
  const receipts: LoggedReceipt[] = []
  const blocks: Uint8Array[] = [template.blocks.coordinator, template.collateral]
  for (let start = 0; start < count; start += BATCH) {
    const signings = Array.from({ length: Math.min(BATCH, count - start) }, (_, at) => sign(template, start + at))
    const evidence = issueBatch(template, { sequence: start / BATCH, signings })
    const first = log.entries.length
    for (const { statement } of signings) {
      const timeMs = new Date(statement.signedAt).getTime()
      const entry = { kind: 'signature', keyId: statement.keyId, leaf: toHex(hashLeaf(statement)), timeMs } as const
      log.append(entry)
      leaves.push(hashLogEntry(entry))
    }
    const size = leaves.length
    const checkpoint = log.toNote(size, Math.ceil(signedAt.getTime() / 1000) + start)
    for (const [at, { signed, statement, entropy }] of signings.entries()) {
      const index = first + at
      const receipt = assembleAttestation({
        signed,
        statement,
        entropy,
        batch: toCid(evidence.batch),
        release: toCid(evidence.release),
        inclusion: { leafIndex: at, path: (evidence.paths[at] ?? []).map(toHex) },
        log: formatTlogProof({ index, proof: createInclusionProof(readNode, { index, size }), checkpoint }),
      })
      const bytes = encodeBlock('attestation', receipt)
      receipts.push({ receipt, bytes, cid: toCid(bytes) })
    }
    blocks.push(evidence.batch, evidence.release)
  }
  return { log, template, receipts, blocks }
}

function sign(template: SimulatedAttestation, index: number) {
  const key = bytesOf(`${developmentSeed} wallet`)
  const time = new Date(signedAt.getTime() + index * 10)
  const entropy = createSample(time)
  const signed = isMessage(index) ? signMessage(index) : signTransaction(template, { key, index, time })
  const statement: StatementV2 = {
    ...template.receipt.signer.statement,
    kind: signed.kind,
    subject: toHex(hashSubject(signed.subject)),
    witness: toHex(hashWitness(entropy)),
    signedAt: time.toISOString(),
  }
  return { signed, statement, entropy }
}

/** The content is private: only the commitment is public. */
function signMessage(index: number): Signed {
  return { kind: 'off-chain', subject: { commitment: toHex(bytesOf(`message ${index}`)) } }
}

function signTransaction(
  { receipt }: SimulatedAttestation,
  { key, index, time }: { key: Uint8Array; index: number; time: Date },
): Signed {
  if (receipt.kind !== 'transaction') throw new TypeError('another kind')
  const { chainId, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas, from } = receipt.subject
  const nonce = index - Math.floor((index + 1) / 10)
  const metadata = { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas }
  const digest = hashUnsignedTransaction(metadata)
  const recovered = secp256k1.sign(digest, key, { prehash: false, format: 'recovered' })
  const signature = Uint8Array.from([...recovered.subarray(1), 27 + (recovered[0] ?? 0)])
  const subject = {
    ...metadata,
    txHash: toPrefixedHex(hashSignedTransaction(metadata, signature)),
    from,
    digestSigned: toPrefixedHex(digest),
    signature: toPrefixedHex(signature),
    signedAt: time.toISOString(),
  }
  return { kind: 'transaction', subject }
}

function createSample(time: Date) {
  const satellite = createSimulatedSatellite(developmentSeed)
  const timestampMs = time.getTime() - 800
  const value = bytesOf(`sample ${timestampMs}`)
  return {
    source: 'simulated-satellite',
    valueHex: toHex(value),
    timestamp: new Date(timestampMs).toISOString(),
    signatureHex: satellite.sign({ value, timestampMs, sequence: 7 }),
    publicKey: satellite.publicKey,
    sequence: 7,
  }
}

function issueBatch(
  template: SimulatedAttestation,
  { sequence, signings }: { sequence: number; signings: readonly { statement: StatementV2 }[] },
) {
  const leaves = signings.map(({ statement }) => hashLeaf(statement))
  const { version: _, ...stated } = parseBlock('batch', template.blocks.batch)
  const treeSize = leaves.length
  const previous = sequence === 0 ? new Uint8Array(32) : bytesOf(`batch ${sequence - 1}`)
  const reportData = computeTdxReportData({
    treeSize,
    root: hashTree(leaves),
    bootId: fromHex(stated.bootId),
    batchSequence: sequence,
    previousBatchHash: previous,
    configHash: hashEnclaveConfig(stated.config),
  })
  const mrtd = fromHex(template.anchors.measurements[0]?.mrTd ?? '')
  const quoteHex = toHex(createSimulator({ seed: developmentSeed, at: signedAt }).quote({ mrtd, reportData }))
  const batch = encodeBlock(
    'batch',
    assembleBatch({ ...stated, quoteHex, sequence, previous: toHex(previous), treeSize }),
  )
  const { coordinator, collateral } = parseBlock('release', template.blocks.release)
  const released = { batch: toCid(batch), coordinator, collateral }
  const message = toBlockRelease(released)
  const mlDsa65 = ml_dsa65.keygen(bytesOf(`${developmentSeed} coordinator ML-DSA-65`))
  const signatures = {
    ed25519: ed25519.sign(message, bytesOf(`${developmentSeed} coordinator`)),
    mlDsa65: ml_dsa65.sign(message, mlDsa65.secretKey, { extraEntropy: false }),
  }
  const release = encodeBlock('release', assembleRelease({ ...released, signatures }))
  return { batch, release, paths: createInclusionPaths(leaves) }
}

/** Complete nodes never change as a tree grows. */
function createNodeReader(leaves: readonly Uint8Array[]): ReadNode {
  const known = new Map<string, Uint8Array>()
  const readNode: ReadNode = ({ level, index }) => {
    if (level === 0) return leaves[index] as Uint8Array
    const name = `${level}/${index}`
    const node =
      known.get(name) ??
      hashTreeNode(
        readNode({ level: level - 1, index: 2 * index }),
        readNode({ level: level - 1, index: 2 * index + 1 }),
      )
    known.set(name, node)
    return node
  }
  return readNode
}
