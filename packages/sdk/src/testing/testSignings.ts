import {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  encodeSignedTransaction,
  fromHex,
  type Hex,
  hasSignature,
  isProofTransition,
  type ProofPayload,
  type ProofStatus,
  parseTxMetadata,
  proofTransitions,
  type Signed,
  type SignedSummary,
  type TransactionPage,
  type TxMetadata,
  toEventHash,
  toSignedSummary,
  type VaultBudget,
} from '@countersign/protocol'
import { keccak256, stringToBytes } from 'viem'
import { toRawCid } from '../vaults/vault.ts'
import { toCursor } from './parseRequest.ts'
import {
  createTestReceipt,
  createTestReceiptV2,
  filler,
  type TestReceiptV2Parameters,
  toBase64Url,
} from './testReceipt.ts'

/** The key that signed. */
export type TestSigner = {
  address: Hex
  publicKey: Hex
  /** The vault's, or null for the user's own wallet. */
  policyHash: string | null
}

/** A signature without its proof's state. */
type SignedContent = {
  readonly signer: TestSigner
  readonly summary: SignedSummary
  readonly txHash: Hex
  readonly chainId: number
  /** Empty for an off-chain signature, which only its caller has. */
  readonly signature: Hex
  toReceipt(parameters: { signedAt: string; sequence: number }): AttestationReceiptV1 | AttestationReceiptV2
}

/** A signature and its proof's state. */
type TestSigning = SignedContent & {
  readonly slug: string
  readonly createdAt: string
  status: ProofStatus
  onchainBlockNumber: number | null
}

/** What allowed a vault to sign: the rule, the hash of its approvals, if any, and whether there was a session. */
type Permission = Pick<TestReceiptV2Parameters, 'rule' | 'approvals' | 'session'>

type SignedTransaction = Permission & {
  digest: Hex
  txMetadata: TxMetadata
  signature: Hex
  budget?: VaultBudget | undefined
}

export type TestSignings = {
  /** One for each transaction, even if added again. */
  addTransaction(signer: TestSigner, signed: SignedTransaction): TestSigning
  /** One for each authorization, address or off-chain signature. Each off-chain signature has its own commitment. */
  add(signer: TestSigner, signed: Exclude<Signed, { kind: 'transaction' }>, permission?: Permission): TestSigning
  /** In the order in which they were added. */
  readonly all: readonly TestSigning[]
  find(slug: string): TestSigning | undefined
  /** Moves its proof to the next state, or to `to` if the specification allows it. */
  advance(signing: TestSigning, to?: ProofStatus): void
  toProof(signing: TestSigning): ProofPayload
  /** Newest first, from the cursor on. */
  toPage(parameters: { limit: number; cursor: number | undefined }): TransactionPage
}

export type TestSigningsDeps = {
  /** Mines the block with a proof's event and returns its number. */
  mine(): bigint
}

/** The signatures of a test service. */
export function createTestSignings({ mine }: TestSigningsDeps): TestSignings {
  const signings: TestSigning[] = []

  function toProof(signing: TestSigning): ProofPayload {
    const { summary, txHash, chainId, slug, createdAt, status } = signing
    const isPinned = status !== 'pending_pin' && status !== 'pin_failed'
    const receipt = signing.toReceipt({ signedAt: createdAt, sequence: signings.indexOf(signing) })
    const ipfsCid = isPinned ? toRawCid(stringToBytes(JSON.stringify(receipt))) : null
    return {
      slug,
      ...(summary.kind && { kind: summary.kind }),
      txHash,
      chainId,
      walletAddress: signing.signer.address,
      status,
      ipfsCid,
      ipfsUrl: ipfsCid === null ? null : `ipfs://${ipfsCid}`,
      onchainTxHash: isPinned ? `0x${filler(`publication ${slug}`, 32)}` : null,
      onchainBlockNumber: signing.onchainBlockNumber,
      kmsQuoteVerified: true,
      receipt: isPinned ? receipt : null,
      createdAt,
    }
  }

  /** The service creates one proof for each transaction or authorization. */
  function findOrAdd(content: SignedContent): TestSigning {
    const earlier = signings.find(({ txHash }) => txHash === content.txHash)
    if (earlier !== undefined) return earlier
    const signing: TestSigning = {
      ...content,
      slug: toBase64Url(fromHex(filler(`slug ${signings.length}`, 16))),
      createdAt: new Date().toISOString(),
      status: 'pending_pin',
      onchainBlockNumber: null,
    }
    signings.push(signing)
    return signing
  }

  return {
    addTransaction(signer, { digest, txMetadata, signature, budget, ...permission }) {
      const { address: from, publicKey, policyHash: policy } = signer
      const txHash = keccak256(encodeSignedTransaction(txMetadata, fromHex(signature.slice(2))))
      const toReceipt: SignedContent['toReceipt'] = (parameters) => {
        if (policy === null) {
          return createTestReceipt({ digest, txMetadata, signature, txHash, publicKey, from, ...parameters })
        }
        const { signedAt } = parameters
        const counted = budget && { budget }
        const subject = { ...txMetadata, txHash, from, digestSigned: digest, signature, signedAt, ...counted }
        const receipt = { from, publicKey, policy, ...permission, ...parameters }
        return createTestReceiptV2({ kind: 'transaction', subject }, receipt)
      }
      const summary = toSignedSummary({ kind: 'transaction', subject: parseTxMetadata(txMetadata) })
      return findOrAdd({ signer, summary, txHash, chainId: txMetadata.chainId, signature, toReceipt })
    },
    add(signer, signed, permission = { rule: null, approvals: null, session: 'cookie' }) {
      const { address: from, publicKey, policyHash: policy } = signer
      const { chainId, signature } = hasSignature(signed) ? signed.subject : ({ chainId: 0, signature: '0x' } as const)
      return findOrAdd({
        signer,
        summary: toSignedSummary(signed),
        txHash: toEventHash(signed),
        chainId,
        signature,
        toReceipt: (parameters) =>
          createTestReceiptV2(signed, { from, publicKey, policy, ...permission, ...parameters }),
      })
    },
    all: signings,
    find: (slug) => signings.find((signing) => signing.slug === slug),
    advance(signing, to = proofTransitions[signing.status][0]) {
      if (to === undefined || !isProofTransition(signing.status, to)) {
        throw new Error(`a proof does not move from ${signing.status} to ${to ?? 'anywhere'}`)
      }
      signing.status = to
      if (to === 'complete') signing.onchainBlockNumber = Number(mine())
    },
    toProof,
    toPage({ limit, cursor = signings.length }) {
      const before = Math.min(cursor, signings.length)
      const page = signings.slice(Math.max(0, before - limit), before).reverse()
      const rest = before - page.length
      return {
        transactions: page.map(({ signer, summary, txHash, chainId, slug, status, createdAt }) => {
          const vault = signer.policyHash !== null && { walletAddress: signer.address }
          return { ...summary, ...vault, txHash, chainId, slug, status, createdAt }
        }),
        nextCursor: rest > 0 ? toCursor(BigInt(rest)) : null,
      }
    },
  }
}
