import {
  createVerifier,
  parseReport,
  type SnpTcb,
  type TcbStatus,
  type TrustedRoot,
  toTdMeasurement,
} from '@countersign/attestation'
import {
  createSimulatedSatellite,
  createSimulator,
  developmentSeed,
  type SimulatedCertificateOptions,
  type SimulatedQuoteOptions,
  type SimulatedReportOptions,
  simulatedEntropyKeys,
} from '@countersign/attestation/simulator'
import {
  computeSnpReportData,
  computeTdxReportData,
  concatBytes,
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  hashEntropy,
  hashLeaf,
  hashSignedTransaction,
  hashUnsignedTransaction,
  type Statement,
  type TxMetadata,
  tags,
  toAddress,
  toCanonicalJson,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256, sha384 } from '@noble/hashes/sha2.js'
import { canonicalBytes } from '../canonicalCodec.ts'
import type { Anchors } from '../check/anchors.ts'
import { toCid } from '../cid.ts'
import { assemble, hashPart, type ReceiptRecords, toReceiptRelease } from '../v1/assemble.ts'
import type { AttestationReceiptV1, SelfAttestation, Witness } from '../v1/schema.ts'
import { parseBlock } from '../v2/blocks.ts'
import {
  type BatchOptions,
  bytesOf,
  createBatch,
  type IssuedAttestation,
  issueAttestation,
  type SigningOptions,
  signDigest,
} from './issueAttestation.ts'

export type SimulatedIssueOptions = BatchOptions & {
  signedAt: Date
  txMetadata?: Partial<TxMetadata>
  batchSequence?: number
  config?: Partial<EnclaveConfig>
  /** A different seed gives a different satellite. */
  satelliteSeed?: string
  /** The age of the sample at signing. */
  sampleAgeMs?: number
  /** The name of a source that doesn't sign, instead of the satellite. */
  unsignedSource?: string
  /** All values of the quote except its report data. */
  quote?: Omit<SimulatedQuoteOptions, 'reportData'>
  /** Runtime events as from dstack. They determine RTMR3, and the receipt includes their log. */
  events?: readonly { name: string; payload: string }[]
  /** All values of the coordinator's report except its report data, and the chain of the key that signs it. */
  report?: Omit<SimulatedReportOptions, 'reportData'>
  certificates?: SimulatedCertificateOptions
  /** When the coordinator fetched its report. A minute before signing by default. */
  fetchedAt?: string
}

/** One signature's receipt, with everything that a verifier needs to accept it. */
export type SimulatedIssue = {
  records: ReceiptRecords
  receipt: AttestationReceiptV1
  bytes: Uint8Array<ArrayBuffer>
  cid: string
  collateral: Uint8Array<ArrayBuffer>
  /** Anchors under which every required step passes. */
  anchors: Required<Omit<Anchors, 'events' | 'platforms' | 'logWitnesses' | 'contract' | 'logContracts'>>
}

export type SimulatedAttestationOptions = SimulatedIssueOptions & SigningOptions

/** One signature's receipt of version 2, with everything that a verifier needs to accept it. */
export type SimulatedAttestation = IssuedAttestation & Pick<SimulatedIssue, 'anchors'>

export type ReceiptSimulator = {
  roots: readonly TrustedRoot[]
  mockEntropyKeys: readonly string[]
  issue(options: SimulatedIssueOptions): Promise<SimulatedIssue>
  /** A receipt of version 2, of any kind of signature. */
  issueV2(options: SimulatedAttestationOptions): Promise<SimulatedAttestation>
}

const DEFAULT_TX: TxMetadata = {
  chainId: 31337,
  nonce: 0,
  to: '0x00000000000000000000000000000000000000c5',
  value: '1000000000000000000',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '2000000000',
  maxPriorityFeePerGas: '1000000000',
}

/** The defaults of simulated chips. */
const MINIMUM_TCB: { Milan: Partial<SnpTcb> } = { Milan: { bl: 4, snp: 24, ucode: 219 } }

const DEFAULT_CONFIG: EnclaveConfig = {
  issuers: [{ issuer: 'https://issuer.example', audience: 'countersign', jwksOrigin: 'https://issuer.example' }],
  caSet: 'system',
  rootSecret: 'dstack',
  quoteSource: 'mock',
  callerPolicy: 'none',
  version: '0.1.0',
}

/**
 * A whole simulated service in memory, from wallet key to release. It issues receipts like the real one, for tests, examples and the golden
 * files. The same seed and options give the same bytes.
 */
export function createReceiptSimulator(seed: string = developmentSeed): ReceiptSimulator {
  const walletKey = bytesOf(`${seed} wallet`)
  const coordinatorSecret = bytesOf(`${seed} coordinator`)
  const coordinatorKey = ed25519.getPublicKey(coordinatorSecret)
  const pki = createSimulator({ seed, at: new Date(0) })

  const service: ReceiptSimulator = {
    get roots() {
      return [pki.intelRoot, pki.amdRoot]
    },
    get mockEntropyKeys() {
      return simulatedEntropyKeys(seed)
    },

    async issue(options) {
      const { signedAt, batchSequence = 0 } = options
      const simulator = createSimulator({ seed, at: signedAt })
      const config: EnclaveConfig = { ...DEFAULT_CONFIG, ...options.config }
      const txMetadata = { ...DEFAULT_TX, ...options.txMetadata }
      const witness = createWitness(options, seed)
      const statement = sign({ walletKey, txMetadata, witness, coordinatorKey, signedAt })

      const { root, ...inclusion } = createBatch(hashLeaf(statement), options)
      const bootId = bytesOf(`${seed} boot`).slice(0, 16)
      const previous = batchSequence === 0 ? new Uint8Array(32) : sha256(bootId)
      const configHash = hashEnclaveConfig(config)
      const reportData = computeTdxReportData({
        treeSize: inclusion.treeSize,
        root,
        bootId,
        batchSequence,
        previousBatchHash: previous,
        configHash,
      })
      const recorded = options.events === undefined ? undefined : record(options.events)
      const quote = simulator.quote({ ...toQuoteOptions(options), reportData })
      const collateral = simulator.collateral()
      const collateralBytes = toCanonicalJson(collateral)
      const selfAttestation = attest(simulator, { coordinatorKey, options, signedAt })
      const { body, tcb } = await createVerifier({ roots: [pki.intelRoot] }).verifyQuote({
        quote,
        collateral,
        at: signedAt,
      })
      const release = ed25519.sign(
        toReceiptRelease({
          leaf: hashLeaf(statement),
          collateralHash: sha256(collateralBytes),
          selfAttestationHash: hashPart(selfAttestation),
          witness,
        }),
        coordinatorSecret,
      )
      const measurement = toTdMeasurement(body)
      const { mrTd, rtmr0, rtmr1, rtmr2, rtmr3 } = measurement
      const records: ReceiptRecords = {
        txMetadata,
        statement,
        inclusion,
        batch: {
          bootId: toHex(bootId),
          sequence: batchSequence,
          previous: toHex(previous),
          mode: 'mock',
          quoteHex: toHex(quote),
          quoteVerified: true,
          ...(recorded === undefined ? {} : { eventLog: recorded.eventLog }),
          measurement: { mrTd, rtmr0, rtmr1, rtmr2, rtmr3 },
          tcbStatus: tcb.status as TcbStatus,
          config,
          collateral: toCid(collateralBytes),
        },
        coordinator: {
          mode: 'mock',
          publicKey: toHex(coordinatorKey),
          selfAttestation,
          release: toHex(release),
        },
        witness,
      }
      const receipt = assemble(records)
      const bytes = canonicalBytes(receipt)
      return {
        records,
        receipt,
        bytes,
        cid: toCid(bytes),
        collateral: collateralBytes,
        anchors: {
          measurements: [measurement],
          configHashes: [toHex(configHash)],
          ...toMachineAnchors(selfAttestation),
          coordinatorConfigHashes: [selfAttestation.configHash],
          entropyKeys: [witness.publicKey],
        },
      }
    },

    async issueV2(options) {
      const { records, collateral, anchors } = await service.issue(options)
      const evidence = { quote: toQuoteOptions(options), report: toReportOptions(options) }
      const issued = issueAttestation(seed, options, { records, collateral, ...evidence })
      const { config } = parseBlock('batch', issued.blocks.batch)
      const entropyKeys = [issued.receipt.entropy.publicKey]
      return { ...issued, anchors: { ...anchors, configHashes: [toHex(hashEnclaveConfig(config))], entropyKeys } }
    },
  }
  return service
}

function toQuoteOptions(options: SimulatedIssueOptions) {
  const rtmrs = options.events === undefined ? {} : { rtmrs: record(options.events).rtmrs }
  return { mrtd: sha384Like('enclave'), ...rtmrs, ...options.quote }
}

function toReportOptions(options: SimulatedIssueOptions) {
  return { measurement: sha384Like('coordinator'), ...options.report }
}

function createWitness(options: SimulatedIssueOptions, seed: string): Witness {
  const { signedAt, satelliteSeed, sampleAgeMs = 800, unsignedSource } = options
  const satellite = createSimulatedSatellite(satelliteSeed ?? seed)
  const timestampMs = signedAt.getTime() - sampleAgeMs
  const value = bytesOf(`${seed} sample ${timestampMs}`)
  const timestamp = new Date(timestampMs).toISOString()
  if (unsignedSource !== undefined) {
    // In the form of the coordinator.
    const unsigned = { signatureHex: '00'.repeat(64), publicKey: '00'.repeat(32), sequence: 0 }
    return { source: unsignedSource, valueHex: toHex(value), timestamp, ...unsigned }
  }
  return {
    source: 'simulated-satellite',
    valueHex: toHex(value),
    signatureHex: satellite.sign({ value, timestampMs, sequence: 7 }),
    publicKey: satellite.publicKey,
    timestamp,
    sequence: 7,
  }
}

function sign(input: {
  walletKey: Uint8Array
  txMetadata: TxMetadata
  witness: Witness
  coordinatorKey: Uint8Array
  signedAt: Date
}): Statement {
  const { walletKey, txMetadata, witness, signedAt } = input
  const publicKey = secp256k1.getPublicKey(walletKey, false)
  const digest = hashUnsignedTransaction(txMetadata)
  const signature = signDigest(digest, walletKey)
  return {
    type: tags.signing,
    keyId: toHex(sha256(walletKey).subarray(0, 16)),
    address: toAddress(publicKey),
    publicKey: toHex(publicKey),
    digest: toPrefixedHex(digest),
    signature: toPrefixedHex(signature),
    txHash: toPrefixedHex(hashSignedTransaction(txMetadata, signature)),
    chainId: txMetadata.chainId,
    entropyHash: toHex(hashEntropy(fromHex(witness.valueHex))),
    coordinatorKey: toHex(input.coordinatorKey),
    signedAt: signedAt.toISOString(),
  }
}

function attest(
  simulator: ReturnType<typeof createSimulator>,
  input: { coordinatorKey: Uint8Array; options: SimulatedIssueOptions; signedAt: Date },
): SelfAttestation {
  const configHash = bytesOf('coordinator configuration')
  const report = toReportOptions(input.options)
  const reportData = computeSnpReportData({ publicKey: input.coordinatorKey, configHash })
  const { ek, ask, ark } = simulator.certificates(input.options.certificates)
  return {
    reportHex: toHex(simulator.report({ ...report, reportData })),
    certificates: { ek: toHex(ek), ask: toHex(ask), ark: toHex(ark) },
    measurement: toHex(report.measurement),
    configHash: toHex(configHash),
    fetchedAt: input.options.fetchedAt ?? new Date(input.signedAt.getTime() - 60_000).toISOString(),
  }
}

/** dstack's `DSTACK_RUNTIME_EVENT_TYPE`. */
const RUNTIME_EVENT = 0x08000001

/** RTMR3 = SHA-384(RTMR3 ‖ SHA-384(u32le type ‖ ":" ‖ name ‖ ":" ‖ payload)) for each event, from zeros. */
function record(events: NonNullable<SimulatedIssueOptions['events']>) {
  const zero = new Uint8Array(48)
  const rtmr3 = events.reduce((register, { name, payload }) => {
    const prefix = new TextEncoder().encode(`\u{1}\0\0\u{8}:${name}:`)
    return sha384(concatBytes(register, sha384(concatBytes(prefix, fromHex(payload)))))
  }, zero as Uint8Array)
  const entries = events.map(({ name, payload }) => {
    return { imr: 3, event_type: RUNTIME_EVENT, digest: '', event: name, event_payload: payload }
  })
  return { rtmrs: [zero, zero, zero, rtmr3] as const, eventLog: JSON.stringify(entries) }
}

function toMachineAnchors({ reportHex }: SelfAttestation) {
  const { measurement, hostData, chipId } = parseReport(fromHex(reportHex))
  return {
    coordinatorMeasurements: [`${toHex(measurement)}:${toHex(hostData)}`],
    coordinatorMinimumTcb: MINIMUM_TCB,
    coordinatorChips: [toHex(chipId)],
  }
}

/** 48 bytes in place of a measurement. */
function sha384Like(name: string): Uint8Array {
  const half = bytesOf(name)
  return Uint8Array.from([...half, ...half.subarray(0, 16)])
}
