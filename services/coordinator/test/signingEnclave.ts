import { hash } from 'node:crypto'
import { createSimulator, type SimulatedQuoteOptions } from '@countersign/attestation/simulator'
import {
  computeTdxReportData,
  type EnclaveConfig,
  firstPreviousBatchHash,
  fromHex,
  hashBatch,
  hashEnclaveConfig,
  hashLeaf,
  hashSignedTransaction,
  hashTree,
  type SignedBatch,
  type SignItem,
  type SignItemError,
  type Statement,
  tags,
  toAddress,
  toHex,
} from '@countersign/protocol'
import { secp256k1 } from '@noble/curves/secp256k1.js'

/** It signs transactions, with statements of version 1. */
export type SignedItem = { statement: Statement; batch: number; leafIndex: number }
type SignAnswer = { batches: SignedBatch[]; results: (SignedItem | SignItemError)[]; config: EnclaveConfig }

export type SigningEnclave = {
  /** Times that it was asked. */
  calls: number
  config: EnclaveConfig
  /** What its quotes say beside their report data. */
  quote: Omit<SimulatedQuoteOptions, 'reportData'>
  /** Items that one quote covers. */
  limit: number
  /** Changes statements before they are quoted: an enclave that lies. */
  state(statement: Statement): Statement
  /** Changes an answer on its way to the coordinator. */
  tamper(answer: SignAnswer): SignAnswer
  signTransactions(items: readonly SignItem[]): Promise<SignAnswer>
}

/** A wallet key that follows from its name. */
export function createTestWalletKey(name: string) {
  const privateKey = hash('sha256', `wallet ${name}`, 'buffer')
  const publicKey = secp256k1.getPublicKey(privateKey, false)
  return { privateKey, publicKey, keyId: hash('sha256', publicKey, 'hex').slice(0, 32), address: toAddress(publicKey) }
}

/** r ‖ s ‖ v, as the enclave signs. */
export function signTestDigest(digest: Uint8Array, privateKey: Uint8Array): Uint8Array<ArrayBuffer> {
  const recovered = secp256k1.sign(digest, privateKey, { prehash: false, format: 'recovered' })
  const signature = new Uint8Array(65)
  signature.set(recovered.subarray(1))
  signature[64] = 27 + (recovered[0] ?? 0)
  return signature
}

/**
 * An enclave in this process, on simulated silicon: its signatures, trees and quotes are real, and tests bend them in single
 * points. It knows the wallets that it is given and judges nothing.
 */
export function createSigningEnclave(deps: {
  clock: { now(): number }
  coordinatorKey: string
  wallets: readonly ReturnType<typeof createTestWalletKey>[]
}): SigningEnclave {
  const simulator = createSimulator({ at: new Date(deps.clock.now()) })
  const bootId = hash('sha256', 'boot', 'buffer').subarray(0, 16)
  let sequence = 0
  let previous: Uint8Array = firstPreviousBatchHash()

  function toStatement(item: SignItem): Statement {
    if (item.kind !== 'transaction') throw new Error('transactions only')
    const wallet = deps.wallets.find(({ keyId }) => keyId === item.keyId)
    if (wallet === undefined) throw new Error('no such wallet')
    const signature = signTestDigest(fromHex(item.digest.slice(2)), wallet.privateKey)
    return {
      type: tags.signing,
      keyId: item.keyId,
      address: wallet.address,
      publicKey: toHex(wallet.publicKey),
      digest: item.digest,
      signature: `0x${toHex(signature)}`,
      txHash: `0x${toHex(hashSignedTransaction(item.txMetadata, signature))}`,
      chainId: item.txMetadata.chainId,
      entropyHash: hash('sha256', Buffer.from(item.witness.valueHex, 'hex'), 'hex'),
      coordinatorKey: deps.coordinatorKey,
      signedAt: new Date(deps.clock.now()).toISOString(),
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

  const enclave: SigningEnclave = {
    calls: 0,
    config: {
      issuers: [{ issuer: 'https://issuer.example', audience: 'countersign', jwksOrigin: 'https://issuer.example' }],
      caSet: 'bundled',
      rootSecret: 'file',
      quoteSource: 'mock',
      callerPolicy: 'any',
      version: '0.1.0',
    },
    quote: {},
    limit: 256,
    state: (statement) => statement,
    tamper: (answer) => answer,
    async signTransactions(items) {
      enclave.calls += 1
      const answer: SignAnswer = { batches: [], results: [], config: enclave.config }
      for (let start = 0; start < items.length; start += enclave.limit) {
        const statements = items
          .slice(start, start + enclave.limit)
          .map(toStatement)
          .map((statement) => enclave.state(statement))
        const leaves = statements.map(hashLeaf)
        const batch = answer.batches.push(quoteBatch(leaves)) - 1
        for (const [leafIndex, statement] of statements.entries()) {
          answer.results.push({ statement, batch, leafIndex })
        }
      }
      return enclave.tamper(answer)
    },
  }
  return enclave
}
