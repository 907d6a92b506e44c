import {
  type AttestationReceiptV1,
  type Hex,
  isProofStatus,
  type ProofPayload,
  type SessionUser,
  type TransactionPage,
  type TransactionSummary,
  type WalletInfo,
} from '@countersign/protocol'

/*
 * What the service answers, field by field. Each function gives the value with the fields of the specification alone, or
 * undefined. The HTTP interface may grow, so members that are not known are dropped rather than refused.
 */

type Members = Record<string, unknown>

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isHex(value: unknown, bytes?: number): value is Hex {
  if (typeof value !== 'string' || !/^0x(?:[0-9a-fA-F]{2})*$/.test(value)) return false
  return bytes === undefined || value.length === 2 + 2 * bytes
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isTextOrNull = (value: unknown): value is string | null => value === null || typeof value === 'string'
const isNatural = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isTime = (value: unknown): value is string => isText(value) && !Number.isNaN(Date.parse(value))

export function parseSessionUser(body: unknown): SessionUser | undefined {
  if (!isObject(body)) return undefined
  const { id, email, name } = body
  return isText(id) && typeof email === 'string' && isTextOrNull(name) ? { id, email, name } : undefined
}

export function parseWalletInfo(body: unknown): WalletInfo | undefined {
  if (!isObject(body) || !isObject(body.provenance)) return undefined
  const { address, createdAt } = body
  const { entropyHash, entropySig, satelliteSource } = body.provenance
  if (!isHex(address, 20) || !isTime(createdAt)) return undefined
  if (!isText(entropyHash) || !isText(entropySig) || !isText(satelliteSource)) return undefined
  return { address, createdAt, provenance: { entropyHash, entropySig, satelliteSource } }
}

export function parseSignDigestAnswer(body: unknown): { signature: Hex; slug: string } | undefined {
  if (!isObject(body)) return undefined
  const { signature, slug } = body
  return isHex(signature, 65) && isText(slug) ? { signature, slug } : undefined
}

export function parseProofPayload(body: unknown): ProofPayload | undefined {
  if (!isObject(body)) return undefined
  const { slug, txHash, chainId, walletAddress, status, ipfsCid, ipfsUrl, createdAt } = body
  const { onchainTxHash, onchainBlockNumber, kmsQuoteVerified, receipt } = body
  if (!isText(slug) || !isHex(txHash, 32) || !isNatural(chainId) || !isHex(walletAddress, 20)) return undefined
  if (!isProofStatus(status) || !isTextOrNull(ipfsCid) || !isTextOrNull(ipfsUrl) || !isTime(createdAt)) return undefined
  if (onchainTxHash !== null && !isHex(onchainTxHash, 32)) return undefined
  if (onchainBlockNumber !== null && !isNatural(onchainBlockNumber)) return undefined
  if (typeof kmsQuoteVerified !== 'boolean' || (receipt !== null && !isReceipt(receipt))) return undefined
  return {
    slug,
    txHash,
    chainId,
    walletAddress,
    status,
    ipfsCid,
    ipfsUrl,
    onchainTxHash,
    onchainBlockNumber,
    kmsQuoteVerified,
    receipt,
    createdAt,
  }
}

export function parseTransactionPage(body: unknown): TransactionPage | undefined {
  if (!isObject(body) || !Array.isArray(body.transactions) || !isTextOrNull(body.nextCursor)) return undefined
  const transactions = body.transactions.map(parseTransactionSummary)
  if (!transactions.every((transaction) => transaction !== undefined)) return undefined
  return { transactions, nextCursor: body.nextCursor }
}

function parseTransactionSummary(item: unknown): TransactionSummary | undefined {
  if (!isObject(item)) return undefined
  const { txHash, chainId, slug, status, createdAt } = item
  if (!isHex(txHash, 32) || !isNatural(chainId) || !isText(slug)) return undefined
  return isProofStatus(status) && isTime(createdAt) ? { txHash, chainId, slug, status, createdAt } : undefined
}

/** Its parts are there. What they say is for a verifier, which reads the pinned bytes and not this copy. */
function isReceipt(value: unknown): value is AttestationReceiptV1 {
  if (!isObject(value) || value.version !== 'countersign-attestation/1') return false
  const { transaction, signer, coordinator, entropy, verification } = value
  return [transaction, signer, coordinator, entropy, verification].every(isObject)
}
