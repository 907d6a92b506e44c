import {
  createSimulatedBeacon,
  createSimulator,
  type SimulatedQuoteOptions,
  type SimulatedReportOptions,
  type SimulatedRevocationOptions,
} from '@countersign/attestation/simulator'
import { checkPolicy, type Policy, type SpendContext, toPolicyBytes } from '@countersign/policy'
import {
  type Approval,
  type AttestationReceiptV2,
  type Authorization,
  type computeApprovalChallenge,
  computeCommitment,
  computeSnpReportDataV2,
  computeTdxReportData,
  createEnclaveSettings,
  createInclusionPath,
  type EnclaveConfig,
  type EnclaveSettings,
  fromHex,
  type Hex,
  hashAuthorization,
  hashContent,
  hashEnclaveConfig,
  hashLeaf,
  hashOwner,
  hashSignedTransaction,
  hashSubject,
  hashTree,
  hashUnsignedTransaction,
  hashWitness,
  MAX_RULES,
  type MessageContent,
  type OffChainContent,
  type Opening,
  type OpeningContent,
  type OwnerOpening,
  pickContent,
  type Signed,
  type StatementV2,
  type TxMetadata,
  type TypedData,
  tags,
  toAddress,
  toCanonicalJson,
  toHex,
  toPrefixedHex,
  toSessionName,
  type VaultBudget,
} from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js'
import { toCid } from '../cid.ts'
import type { ReceiptRecords } from '../v1/assemble.ts'
import {
  assembleAttestation,
  assembleBatch,
  assembleCoordinator,
  assembleRelease,
  toBlockRelease,
} from '../v2/assemble.ts'
import { encodeBlock, type GivenBlocks } from '../v2/blocks.ts'
import { createSimulatedLog, type SimulatedLogOptions } from './createSimulatedLog.ts'

/** The content to sign. */
export type SimulatedSigning =
  | { kind: 'transaction' }
  | { kind: 'authorization'; authorization?: Partial<Authorization> }
  | { kind: 'message'; content?: MessageContent }
  /** `content` may depend on the address of the vault. */
  | { kind: 'typed-data'; content?: TypedData | ((address: Hex) => TypedData) }
  | { kind: 'address' }
  /** Revokes the key of an agent: 32 bytes of hex. */
  | { kind: 'revocation'; key: string }

/** The request to the approvers of a simulated vault. */
export type SimulatedApprovalRequest = Omit<
  Parameters<typeof computeApprovalChallenge>[0],
  'vaultAddress' | 'expiresMs'
> & {
  vaultAddress: Hex
}

/** Options only for version 2. */
export type SigningOptions = {
  /** Default: the transaction in `txMetadata`. */
  signing?: SimulatedSigning
  /** Uses a round of the simulated beacon as the sample, instead of the satellite's. */
  isBeacon?: boolean
  settings?: Partial<EnclaveSettings>
  /** Signs as a vault with this policy, instead of the wallet. Doesn't check whether the policy allows it. */
  vault?: {
    policy: Policy
    approve?: (request: SimulatedApprovalRequest) => readonly Approval[]
    /** The rule that the request names. By default one that allows the content, or the nearest. */
    rule?: number
    /** What the payment was counted as. Doesn't check whether that is true. */
    budget?: VaultBudget
    /** Signs without a session. */
    isSessionless?: boolean
  }
  /** The browser's key, if the session has one. */
  clientKey?: string
  /** Adds a log to the settings, and to the receipt the proof that the signature is in it. */
  log?: SimulatedLogOptions
  /** AMD's list, for the coordinator block. */
  revocations?: SimulatedRevocationOptions
}

/** One signature's receipt of version 2, with its blocks. */
export type IssuedAttestation = {
  receipt: AttestationReceiptV2
  bytes: Uint8Array<ArrayBuffer>
  cid: string
  blocks: Required<Omit<GivenBlocks, 'policy'>> & Pick<GivenBlocks, 'policy'>
  collateral: Uint8Array<ArrayBuffer>
  /** Only for off-chain kinds. */
  opening: Opening | undefined
  /** Of an address. */
  owner: OwnerOpening | undefined
}

/** A receipt of version 1 of the same service, and all values of its evidence except report data. */
export type SimulatedTwin = {
  records: ReceiptRecords
  collateral: Uint8Array<ArrayBuffer>
  quote: Omit<SimulatedQuoteOptions, 'reportData'>
  report: Omit<SimulatedReportOptions, 'reportData'>
}

const AUTHORIZATION: Authorization = { chainId: 31337, address: `0x${'7e'.repeat(20)}`, nonce: 0 }
const IDENTITY = { issuer: 'https://idp.example', subject: 'alice', email: 'alice@example.com' }
const MESSAGE: MessageContent = { message: '0x68656c6c6f' }
const TYPED_DATA: TypedData = {
  domain: { name: 'Example', version: '1', chainId: 31337, verifyingContract: `0x${'c5'.repeat(20)}` },
  types: {
    Mail: [
      { name: 'to', type: 'address' },
      { name: 'contents', type: 'string' },
    ],
  },
  primaryType: 'Mail',
  message: { to: AUTHORIZATION.address, contents: 'grüße' },
}

/** The service of version 1: the same keys, machines, code and sample. */
export function issueAttestation(
  seed: string,
  options: SigningOptions & BatchOptions & { signedAt: Date },
  { records, collateral, quote, report }: SimulatedTwin,
): IssuedAttestation {
  const { signedAt, signing = { kind: 'transaction' }, isBeacon = false } = options
  const simulator = createSimulator({ seed, at: signedAt })
  const coordinatorSecret = bytesOf(`${seed} coordinator`)
  const mlDsa65 = ml_dsa65.keygen(bytesOf(`${seed} coordinator ML-DSA-65`))
  const source = isBeacon ? createSimulatedBeacon(seed) : undefined
  const entropy = source?.getRound(signedAt) ?? records.witness
  const log = options.log && createSimulatedLog(seed, options.log)
  const settings: EnclaveSettings = {
    ...createEnclaveSettings(
      [source === undefined ? { kind: 'satellite', key: entropy.publicKey } : { kind: 'drand', ...source.beacon }],
      [AUTHORIZATION.address],
      log?.setting,
    ),
    ...options.settings,
  }
  // Not `toEnclaveVersion`: a verifier must reject malformed settings itself.
  const version = `0.1.0+${toHex(sha256(toCanonicalJson(settings)))}`
  const config: EnclaveConfig = { ...records.batch.config, version }

  const { walletKey, policy, approve, toRule } = openWallet(seed, options.vault, signedAt)
  const publicKey = secp256k1.getPublicKey(walletKey, false)
  const { signed, request, opening, owner, approvals } = sign({
    seed,
    walletKey,
    signing,
    txMetadata: records.txMetadata,
    signedAt,
    policyHash: policy && toHex(sha256(policy)),
    budget: options.vault?.budget,
    approve,
  })
  const statement: StatementV2 = {
    type: tags.signingV2,
    kind: signed.kind,
    keyId: toHex(sha256(walletKey).subarray(0, 16)),
    address: toAddress(publicKey),
    publicKey: toHex(publicKey),
    subject: toHex(hashSubject(signed.subject)),
    witness: toHex(hashWitness(entropy)),
    policy: policy === undefined ? null : toHex(sha256(policy)),
    // Not `hashApprovals`, which rejects a list out of order. That is the verifier's task.
    approvals: approvals === undefined ? null : toHex(sha256(toCanonicalJson(approvals))),
    coordinatorKey: toHex(ed25519.getPublicKey(coordinatorSecret)),
    rule: request === undefined ? null : toRule(request),
    session: toSession(options, toAddress(publicKey)),
    signedAt: signedAt.toISOString(),
  }

  const { treeSize, leafIndex, root, path } = createBatch(hashLeaf(statement), options)
  const { bootId, sequence, previous, eventLog } = records.batch
  const reportData = computeTdxReportData({
    treeSize,
    root,
    bootId: fromHex(bootId),
    batchSequence: sequence,
    previousBatchHash: fromHex(previous),
    configHash: hashEnclaveConfig(config),
  })
  const quoteHex = toHex(simulator.quote({ ...quote, reportData }))
  const batch = encodeBlock(
    'batch',
    assembleBatch({ quoteHex, eventLog, config, settings, bootId, sequence, previous, treeSize, logKey: log?.logKey }),
  )

  const { certificates, configHash, fetchedAt } = records.coordinator.selfAttestation
  const snpReportData = computeSnpReportDataV2({
    ed25519: ed25519.getPublicKey(coordinatorSecret),
    mlDsa65: mlDsa65.publicKey,
    configHash: fromHex(configHash),
  })
  const coordinator = encodeBlock(
    'coordinator',
    assembleCoordinator({
      reportHex: toHex(simulator.report({ ...report, reportData: snpReportData })),
      certificates,
      ...(options.revocations && { revocations: toHex(simulator.revocations(options.revocations)) }),
      configHash,
      keys: { ed25519: statement.coordinatorKey, mlDsa65: toHex(mlDsa65.publicKey) },
      fetchedAt,
    }),
  )
  const released = { batch: toCid(batch), collateral: toCid(collateral), coordinator: toCid(coordinator) }
  const message = toBlockRelease(released)
  const release = encodeBlock(
    'release',
    assembleRelease({
      ...released,
      signatures: {
        ed25519: ed25519.sign(message, coordinatorSecret),
        // Without randomness, so that the same options give the same bytes.
        mlDsa65: ml_dsa65.sign(message, mlDsa65.secretKey, { extraEntropy: false }),
      },
    }),
  )
  const leaf = toHex(hashLeaf(statement))
  const entry = { kind: 'signature', keyId: statement.keyId, leaf, timeMs: signedAt.getTime() } as const
  const receipt = assembleAttestation({
    signed,
    statement,
    inclusion: { leafIndex, path },
    batch: released.batch,
    release: toCid(release),
    entropy,
    policy: policy && toCid(policy),
    approvals: signed.kind === 'off-chain' ? undefined : approvals,
    log: log?.prove(entry),
  })
  const bytes = encodeBlock('attestation', receipt)
  return {
    receipt,
    bytes,
    cid: toCid(bytes),
    blocks: { release, batch, coordinator, ...(policy && { policy }) },
    collateral,
    opening,
    owner,
  }
}

type Signature = {
  signed: Signed
  /** For the rules of a vault. */
  request?: RuleRequest
  opening?: Opening
  owner?: OwnerOpening
  approvals?: readonly Approval[] | undefined
}

function toSession({ vault, clientKey }: SigningOptions, address: Hex): string {
  if (vault?.isSessionless) return 'none'
  return clientKey === undefined ? 'cookie' : toSessionName({ clientKey, address })
}

/** The rule that a request would name: one that allows it, or the nearest. `transaction` may have other members. */
export function findRule(
  policy: Policy,
  request: OffChainContent | { transaction: TxMetadata },
  context?: SpendContext,
): number {
  const [source] = policy.time ?? []
  const sample = source && { source, timeMs: Number.MAX_SAFE_INTEGER }
  const asked = 'kind' in request ? request : { ...toRequest(request.transaction), sample }
  const verdict = checkPolicy(policy, asked, undefined, context)
  return (verdict.allowed ? verdict.rule : verdict.nearest) ?? 0
}

function toRequest({ chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas }: TxMetadata) {
  const txMetadata = { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas }
  return { kind: 'transaction', txMetadata } as const
}

type RuleRequest = Parameters<typeof findRule>[1]
/** A revocation is of no rule. */
type Approve = (request: RuleRequest | undefined, digest: Uint8Array) => readonly Approval[] | undefined

/** The key of the user's wallet, or of the vault with these rules. Different rules give a different key. */
function openWallet(seed: string, vault: SigningOptions['vault'], signedAt: Date) {
  if (vault === undefined) {
    const none = { policy: undefined, approve: () => undefined, toRule: () => null }
    return { walletKey: bytesOf(`${seed} wallet`), ...none }
  }
  const policy = toPolicyBytes(vault.policy)
  const policyHash = sha256(policy)
  const walletKey = bytesOf(`${seed} vault ${toHex(policyHash)}`)
  const vaultAddress = toAddress(secp256k1.getPublicKey(walletKey, false))
  const context = { vaultAddress, nowMs: signedAt.getTime() }
  const toRule = (request: RuleRequest) => vault.rule ?? findRule(vault.policy, request, context)
  const approve: Approve = (request, digest) => {
    const kind = request === undefined ? 'revocation' : 'kind' in request ? request.kind : 'transaction'
    const rule = request === undefined ? MAX_RULES : toRule(request)
    const approvals = vault.approve?.({ vaultAddress, policyHash, rule, kind, digest }) ?? []
    return approvals.length === 0 ? undefined : approvals
  }
  return { walletKey, policy, approve, toRule }
}

function sign(input: {
  seed: string
  walletKey: Uint8Array
  signing: SimulatedSigning
  txMetadata: TxMetadata
  signedAt: Date
  policyHash: string | undefined
  budget: VaultBudget | undefined
  approve: Approve
}): Signature {
  const { seed, walletKey, signing, txMetadata, signedAt, policyHash, approve } = input
  const counted = input.budget && { budget: input.budget }
  if (signing.kind === 'revocation') {
    const { key } = signing
    const subject = { address: toAddress(secp256k1.getPublicKey(walletKey, false)), policy: policyHash ?? '', key }
    return { signed: { kind: 'revocation', subject }, approvals: approve(undefined, sha256(fromHex(key))) }
  }
  if (signing.kind === 'address') {
    const address = toAddress(secp256k1.getPublicKey(walletKey, false))
    const owner: OwnerOpening = { salt: toHex(bytesOf(`${seed} owner salt ${address}`)), identity: IDENTITY }
    const subject = { address, policy: policyHash ?? null, owner: toHex(hashOwner(owner)) }
    return { signed: { kind: 'address', subject }, owner }
  }
  if (signing.kind === 'transaction') {
    const digest = hashUnsignedTransaction(txMetadata)
    const signature = signDigest(digest, walletKey)
    const subject = {
      ...txMetadata,
      txHash: toPrefixedHex(hashSignedTransaction(txMetadata, signature)),
      from: toAddress(secp256k1.getPublicKey(walletKey, false)),
      digestSigned: toPrefixedHex(digest),
      signature: toPrefixedHex(signature),
      signedAt: signedAt.toISOString(),
      ...counted,
    }
    const request = { transaction: txMetadata }
    return { signed: { kind: 'transaction', subject }, request, approvals: approve(request, digest) }
  }
  if (signing.kind === 'authorization') {
    const authorization = { ...AUTHORIZATION, ...signing.authorization }
    const digest = hashAuthorization(authorization)
    const signature = toPrefixedHex(signDigest(digest, walletKey))
    const subject = { ...authorization, digest: toPrefixedHex(digest), signature }
    return { signed: { kind: 'authorization', subject } }
  }
  const salt = toHex(bytesOf(`${seed} content salt ${signedAt.getTime()}`))
  const bare = toContent(signing, salt, toAddress(secp256k1.getPublicKey(walletKey, false)))
  const request = pickContent(bare)
  const approvals = approve(request, fromHex(bare.digest.slice(2)))
  const content = { ...bare, ...(approvals && { approvals }), ...counted }
  const opening: Opening = {
    content,
    signature: {
      salt: toHex(bytesOf(`${seed} signature salt ${signedAt.getTime()}`)),
      signature: toPrefixedHex(signDigest(fromHex(content.digest.slice(2)), walletKey)),
    },
  }
  const subject = { commitment: toHex(computeCommitment(opening)) }
  return { signed: { kind: 'off-chain', subject }, request, opening, approvals }
}

function toContent(
  { kind, content: given }: Extract<SimulatedSigning, { content?: unknown }>,
  salt: string,
  address: Hex,
): OpeningContent {
  const content = typeof given === 'function' ? given(address) : given
  const shown = { kind, content: content ?? { message: MESSAGE, 'typed-data': TYPED_DATA }[kind] } as OffChainContent
  return { salt, kind, digest: toPrefixedHex(hashContent(shown)), content: shown.content } as OpeningContent
}

export type BatchOptions = {
  /** The number of signatures under the quote, and the index of this one. */
  treeSize?: number
  leafIndex?: number
}

/** The inclusion of a statement among random leaves. */
export function createBatch(leaf: Uint8Array, { treeSize = 1, leafIndex = 0 }: BatchOptions) {
  const leaves = Array.from({ length: treeSize }, (_, index) => (index === leafIndex ? leaf : bytesOf(`leaf ${index}`)))
  return { treeSize, leafIndex, root: hashTree(leaves), path: createInclusionPath(leaves, leafIndex).map(toHex) }
}

export function signDigest(digest: Uint8Array, walletKey: Uint8Array): Uint8Array {
  const recovered = secp256k1.sign(digest, walletKey, { prehash: false, format: 'recovered' })
  return Uint8Array.from([...recovered.subarray(1), 27 + (recovered[0] ?? 0)])
}

export function bytesOf(name: string): Uint8Array<ArrayBuffer> {
  return sha256(new TextEncoder().encode(name))
}
