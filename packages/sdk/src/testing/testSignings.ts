import {
  encodeSignedTransaction,
  fromHex,
  type Hex,
  isProofTransition,
  type ProofPayload,
  type ProofStatus,
  proofTransitions,
  type TransactionPage,
  type TxMetadata,
} from '@countersign/protocol'
import { keccak256, stringToBytes } from 'viem'
import { toCursor } from './parseRequest.ts'
import { createTestReceipt, filler, toBase64Url, toRawCid } from './testReceipt.ts'

/** One signature, and how far its proof has come. */
type TestSigning = {
  readonly digest: Hex
  readonly txMetadata: TxMetadata
  readonly signature: Hex
  readonly txHash: Hex
  readonly slug: string
  readonly createdAt: string
  status: ProofStatus
  onchainBlockNumber: number | null
}

export type TestSignings = {
  /** One for each digest, however often it is added. */
  add(signed: Pick<TestSigning, 'digest' | 'txMetadata' | 'signature'>): TestSigning
  /** In the order in which they were added. */
  readonly all: readonly TestSigning[]
  find(slug: string): TestSigning | undefined
  /** Moves its proof to the next state, or to the given one if the specification lets it go there. */
  advance(signing: TestSigning, to?: ProofStatus): void
  toProof(signing: TestSigning): ProofPayload
  /** Newest first, from the position of the cursor on. */
  toPage(parameters: { limit: number; cursor: number | undefined }): TransactionPage
}

export type TestSigningsDeps = {
  address: Hex
  publicKey: Hex
  /** Mines the block in which a proof is published, and answers its number. */
  mine(): bigint
}

/** What a test service has signed. */
export function createTestSignings({ address, publicKey, mine }: TestSigningsDeps): TestSignings {
  const signings: TestSigning[] = []

  function toProof(signing: TestSigning): ProofPayload {
    const { digest, txMetadata, signature, txHash, slug, createdAt, status } = signing
    const isPinned = status !== 'pending_pin' && status !== 'pin_failed'
    const receipt = createTestReceipt({
      ...{ txMetadata, digest, signature, txHash, publicKey },
      from: address,
      signedAt: createdAt,
      sequence: signings.indexOf(signing),
    })
    const ipfsCid = isPinned ? toRawCid(stringToBytes(JSON.stringify(receipt))) : null
    return {
      slug,
      txHash,
      chainId: txMetadata.chainId,
      walletAddress: address,
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

  return {
    add({ digest, txMetadata, signature }) {
      const earlier = signings.find((signing) => signing.digest === digest)
      if (earlier !== undefined) return earlier
      const signing: TestSigning = {
        ...{ digest, txMetadata, signature },
        txHash: keccak256(encodeSignedTransaction(txMetadata, fromHex(signature.slice(2)))),
        slug: toBase64Url(fromHex(filler(`slug ${signings.length}`, 16))),
        createdAt: new Date().toISOString(),
        status: 'pending_pin',
        onchainBlockNumber: null,
      }
      signings.push(signing)
      return signing
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
        transactions: page.map(({ txHash, txMetadata, slug, status, createdAt }) => ({
          ...{ txHash, chainId: txMetadata.chainId, slug, status, createdAt },
        })),
        nextCursor: rest > 0 ? toCursor(BigInt(rest)) : null,
      }
    },
  }
}
