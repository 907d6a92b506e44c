import { hash } from 'node:crypto'
import { createSimulator, type SimulatedQuoteOptions } from '@countersign/attestation/simulator'
import { hashApprovals } from '@countersign/policy'
import {
  computeCommitment,
  computeTdxReportData,
  createEnclaveSettings,
  type EnclaveConfig,
  type EnclaveSettings,
  firstPreviousBatchHash,
  fromHex,
  type Hex,
  hashAuthorization,
  hashBatch,
  hashEnclaveConfig,
  hashLeaf,
  hashMessage,
  hashSignedTransaction,
  hashSubject,
  hashTree,
  hashTypedData,
  hashWitness,
  type Opening,
  type Signed,
  type SignedBatch,
  type SignedStatement,
  type SignItem,
  type SignItemError,
  type Statement,
  tags,
  toAddress,
  toEnclaveVersion,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { secp256k1 } from '@noble/curves/secp256k1.js'

type Place = { batch: number; leafIndex: number }
/** Of a transaction, with a statement of version 1. */
export type SignedItem = { statement: Statement } & Place
/** Of any kind, with a statement of version 2. */
export type SignedItemV2 = Extract<SignedStatement, { subject: unknown }> & Place
type SignAnswer = {
  batches: SignedBatch[]
  results: (SignedItem | SignedItemV2 | SignItemError)[]
  config: EnclaveConfig
  settings: EnclaveSettings
}

export type SigningEnclave = {
  /** The number of its calls. */
  calls: number
  config: EnclaveConfig
  settings: EnclaveSettings
  /** The content of its quotes besides their report data. */
  quote: Omit<SimulatedQuoteOptions, 'reportData'>
  /** Items per quote. */
  limit: number
  /** Changes statements of version 1 before they are quoted, like a lying enclave. */
  state(statement: Statement): Statement
  /** The same for version 2, with the subject and the opening. */
  stateV2(signed: Omit<SignedItemV2, keyof Place>): Omit<SignedItemV2, keyof Place>
  /** Changes a response on its way to the coordinator. */
  tamper(answer: SignAnswer): SignAnswer
  signItems(items: readonly SignItem[]): Promise<SignAnswer>
}

/** A wallet key derived from its name. */
export function createTestWalletKey(name: string) {
  const privateKey = hash('sha256', `wallet ${name}`, 'buffer')
  const publicKey = secp256k1.getPublicKey(privateKey, false)
  return { privateKey, publicKey, keyId: hash('sha256', publicKey, 'hex').slice(0, 32), address: toAddress(publicKey) }
}

/** r ‖ s ‖ v, like the enclave's signatures. */
export function signTestDigest(digest: Uint8Array, privateKey: Uint8Array): Uint8Array<ArrayBuffer> {
  const recovered = secp256k1.sign(digest, privateKey, { prehash: false, format: 'recovered' })
  const signature = new Uint8Array(65)
  signature.set(recovered.subarray(1))
  signature[64] = 27 + (recovered[0] ?? 0)
  return signature
}

/** A key that a setting accepts: the simulated satellite's. */
const ENTROPY_KEY = '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11'

type SignedAs = { signed: Signed; opening?: Opening }

/** The boot of every test enclave. */
export const TEST_BOOT = hash('sha256', 'boot', 'hex').slice(0, 32)

/** The owner commitment of every test wallet. */
export const TEST_OWNER = '0e'.repeat(32)

/** An enclave's answer for an item, with salts derived from the signature and the sample. */
function signTestItem(item: SignItem, wallet: ReturnType<typeof createTestWalletKey>, signedAt: string): SignedAs {
  const sign = (digest: Uint8Array): Hex => toPrefixedHex(signTestDigest(digest, wallet.privateKey))
  if (item.kind === 'transaction') {
    const { txMetadata, digest: digestSigned } = item
    const signature = sign(fromHex(digestSigned.slice(2)))
    const txHash = toPrefixedHex(hashSignedTransaction(txMetadata, fromHex(signature.slice(2))))
    const subject = { ...txMetadata, txHash, from: wallet.address, digestSigned, signature, signedAt }
    return { signed: { kind: 'transaction', subject } }
  }
  if (item.kind === 'authorization') {
    const digest = hashAuthorization(item.authorization)
    const subject = { ...item.authorization, digest: toPrefixedHex(digest), signature: sign(digest) }
    return { signed: { kind: 'authorization', subject } }
  }
  if (item.kind === 'address') {
    const subject = { address: wallet.address, policy: item.vault?.policy ?? null, owner: TEST_OWNER }
    return { signed: { kind: 'address', subject } }
  }
  if (item.kind === 'revocation') {
    return {
      signed: {
        kind: 'revocation',
        subject: { address: wallet.address, policy: item.vault?.policy ?? '', key: item.key },
      },
    }
  }
  const digest = item.kind === 'message' ? hashMessage(item.content.message) : hashTypedData(item.content)
  const signature = sign(digest)
  const salt = (name: string) => hash('sha256', `${name} ${signature} ${item.witness.valueHex}`, 'hex')
  const approvals = item.vault?.approvals
  const half = { salt: salt('content'), digest: toPrefixedHex(digest), ...(approvals && { approvals }) }
  const opening: Opening = {
    content:
      item.kind === 'message'
        ? { ...half, kind: item.kind, content: item.content }
        : { ...half, kind: item.kind, content: item.content },
    signature: { salt: salt('signature'), signature },
  }
  return { signed: { kind: 'off-chain', subject: { commitment: toHex(computeCommitment(opening)) } }, opening }
}

/**
 * An enclave in this process with simulated hardware. Signatures, trees and quotes are real, and tests can change single values. It knows the
 * given wallets and checks no rules.
 */
export function createSigningEnclave(deps: {
  clock: { now(): number }
  coordinatorKey: string
  wallets: readonly ReturnType<typeof createTestWalletKey>[]
}): SigningEnclave {
  const simulator = createSimulator({ at: new Date(deps.clock.now()) })
  const bootId = fromHex(TEST_BOOT)
  let sequence = 0
  let previous: Uint8Array = firstPreviousBatchHash()

  function find(item: SignItem) {
    const wallet = deps.wallets.find(({ keyId }) => keyId === item.keyId)
    if (wallet === undefined) throw new Error('no such wallet')
    return wallet
  }

  function sign(item: SignItem): { statement: Statement } | Omit<SignedItemV2, keyof Place> {
    if (item.kind !== 'transaction' || item.statementVersion === 2) return enclave.stateV2(toStatementV2(item))
    const wallet = find(item)
    const signature = signTestDigest(fromHex(item.digest.slice(2)), wallet.privateKey)
    const statement: Statement = {
      type: tags.signing,
      keyId: item.keyId,
      address: wallet.address,
      publicKey: toHex(wallet.publicKey),
      digest: item.digest,
      signature: toPrefixedHex(signature),
      txHash: toPrefixedHex(hashSignedTransaction(item.txMetadata, signature)),
      chainId: item.txMetadata.chainId,
      entropyHash: hash('sha256', Buffer.from(item.witness.valueHex, 'hex'), 'hex'),
      coordinatorKey: deps.coordinatorKey,
      signedAt: new Date(deps.clock.now()).toISOString(),
    }
    return { statement: enclave.state(statement) }
  }

  function toStatementV2(item: SignItem): Omit<SignedItemV2, keyof Place> {
    const wallet = find(item)
    const signedAt = new Date(deps.clock.now()).toISOString()
    const { signed, opening } = signTestItem(item, wallet, signedAt)
    const approvals = item.vault?.approvals
    return {
      statement: {
        type: tags.signingV2,
        kind: signed.kind,
        keyId: item.keyId,
        address: wallet.address,
        publicKey: toHex(wallet.publicKey),
        subject: toHex(hashSubject(signed.subject)),
        witness: toHex(hashWitness(item.witness)),
        policy: item.vault?.policy ?? null,
        approvals: approvals === undefined ? null : toHex(hashApprovals(approvals)),
        coordinatorKey: deps.coordinatorKey,
        rule: item.vault?.rule ?? null,
        session: item.owner === undefined ? 'cookie' : 'none',
        signedAt,
      },
      subject: signed.subject,
      ...(opening && { opening }),
    }
  }

  function quoteBatch(leaves: readonly Uint8Array[]): SignedBatch {
    const reportData = computeTdxReportData({
      treeSize: leaves.length,
      root: hashTree(leaves),
      bootId,
      batchSequence: sequence,
      previousBatchHash: previous,
      configHash: hashEnclaveConfig(enclave.config),
    })
    const batch = {
      bootId: toHex(bootId),
      sequence,
      previous: toHex(previous),
      leaves: leaves.map(toHex),
      quote: toHex(simulator.quote({ ...enclave.quote, reportData })),
    }
    sequence += 1
    previous = hashBatch(reportData)
    return batch
  }

  const settings = createEnclaveSettings([{ kind: 'satellite', key: ENTROPY_KEY }])
  const enclave: SigningEnclave = {
    calls: 0,
    config: {
      issuers: [{ issuer: 'https://issuer.example', audience: 'countersign', jwksOrigin: 'https://issuer.example' }],
      caSet: 'bundled',
      rootSecret: 'file',
      quoteSource: 'mock',
      callerPolicy: 'any',
      version: toEnclaveVersion('0.1.0', settings),
    },
    settings,
    quote: {},
    limit: 256,
    state: (statement) => statement,
    stateV2: (signed) => signed,
    tamper: (answer) => answer,
    async signItems(items) {
      enclave.calls += 1
      const { config, settings } = enclave
      const answer: SignAnswer = { batches: [], results: [], config, settings }
      for (let start = 0; start < items.length; start += enclave.limit) {
        const signed = items.slice(start, start + enclave.limit).map(sign)
        const batch = answer.batches.push(quoteBatch(signed.map(({ statement }) => hashLeaf(statement)))) - 1
        for (const [leafIndex, one] of signed.entries()) answer.results.push({ ...one, batch, leafIndex })
      }
      return enclave.tamper(answer)
    },
  }
  return enclave
}
