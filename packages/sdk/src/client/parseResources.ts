import {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  type Hex,
  isNatural,
  isPlainObject,
  isPrefixedHex,
  isProofStatus,
  type ProofPayload,
  type SessionUser,
  type SignDigestResponse,
  type TransactionPage,
  type TransactionSummary,
  type WalletInfo,
} from '@countersign/protocol'

/*
 * What the service answers, field by field. Each function gives the value with only the fields of the specification, or
 * undefined. The HTTP interface may grow, so members that are not known are dropped rather than refused.
 */

/** Narrows a body, or gives undefined for one that is not of the expected shape. */
export type Parse<R> = (value: unknown) => R | undefined

export function where<R>(is: (value: unknown) => value is R): Parse<R> {
  return (value) => (is(value) ? value : undefined)
}

function orNull<R>(parse: Parse<R>): Parse<R | null> {
  return (value) => (value === null ? null : parse(value))
}

type Parsers<R> = { [Name in keyof R]: Parse<R[Name]> }

export function members<R>(parsers: Parsers<R>): Parse<R> {
  return (body) => {
    if (!isPlainObject(body)) return undefined
    const entries = Object.entries<Parse<unknown>>(parsers).map(([name, parse]) => [name, parse(body[name])] as const)
    return entries.some(([, value]) => value === undefined) ? undefined : (Object.fromEntries(entries) as R)
  }
}

export const string = where((value) => typeof value === 'string')
export const text = where((value): value is string => typeof value === 'string' && value !== '')
export const time = where((value): value is string => typeof value === 'string' && !Number.isNaN(Date.parse(value)))
/** Apps make a link of it: `javascript:` must not get through. */
const link = where((value): value is string => typeof value === 'string' && /^(?:https?|ipfs):/i.test(value))
export const address = where((value): value is Hex => isPrefixedHex(value, 20))
const hash = where((value): value is Hex => isPrefixedHex(value, 32))
const natural = where(isNatural)
/** So that an app can make a bigint of it. */
const wei = where((value): value is string => typeof value === 'string' && /^\d{1,78}$/.test(value))
const status = where(isProofStatus)

export const parseOk = members<{ ok: true }>({ ok: where((value) => value === true) })

export const parseSessionUser = members<SessionUser>({ id: text, email: string, name: orNull(string) })

export const parseWalletInfo = members<WalletInfo>({
  address,
  createdAt: time,
  provenance: members({ entropyHash: text, entropySig: text, satelliteSource: text }),
})

export const parseSignDigestResponse = members<SignDigestResponse>({
  signature: where((value): value is Hex => isPrefixedHex(value, 65)),
  slug: text,
})

/**
 * With what only some have. The kind, which a transaction has not: one that is not known here passes through as well, since without it
 * the proof would pass for that of a transaction. And the address where a vault has signed.
 */
function withOptional<R extends { kind?: unknown }>(toParsers: (kind: unknown) => Partial<Parsers<R>>): Parse<R> {
  return (body) => {
    const { kind, walletAddress } = isPlainObject(body) ? body : {}
    const parsers = {
      ...(kind !== undefined && { kind: text }),
      ...(walletAddress !== undefined && { walletAddress: address }),
    }
    return members<R>({ ...parsers, ...toParsers(kind) } as Parsers<R>)(body)
  }
}

const parseProof = withOptional<ProofPayload>(() => ({
  slug: text,
  txHash: hash,
  chainId: natural,
  walletAddress: address,
  status,
  ipfsCid: orNull(string),
  ipfsUrl: orNull(link),
  onchainTxHash: orNull(hash),
  onchainBlockNumber: orNull(natural),
  kmsQuoteVerified: where((value) => typeof value === 'boolean'),
  receipt: orNull(where(isReceipt)),
  createdAt: time,
}))

export function parseProofPayload(body: unknown): ProofPayload | undefined {
  const proof = parseProof(body)
  if (proof?.status !== 'complete') return proof
  // Specification §3: a complete proof has all three.
  return [proof.ipfsCid, proof.onchainTxHash, proof.onchainBlockNumber].includes(null) ? undefined : proof
}

const parseTransactionSummary = withOptional<TransactionSummary>((kind) => ({
  txHash: hash,
  chainId: natural,
  slug: text,
  status,
  createdAt: time,
  ...(kind === undefined && { to: address, value: wei, data: where(isPrefixedHex), nonce: natural }),
  ...(kind === 'authorization' && { implementation: address }),
}))

export const parseTransactionPage = members<TransactionPage>({
  transactions(list) {
    const transactions = Array.isArray(list) ? list.map(parseTransactionSummary) : [undefined]
    return transactions.every((transaction) => transaction !== undefined) ? transactions : undefined
  },
  nextCursor: orNull(string),
})

/**
 * Its parts are there. What they say is for a verifier, which reads the pinned bytes and not this copy. A receipt of a version
 * that is not known here passes through whole: the status and the slug beside it are good all the same.
 */
function isReceipt(value: unknown): value is AttestationReceiptV1 | AttestationReceiptV2 {
  if (!isPlainObject(value)) return false
  const { version, transaction, subject, signer, coordinator, entropy, verification } = value
  const parts = [signer, coordinator, entropy]
  if (version === 'countersign-attestation/1') parts.push(transaction, verification)
  else if (version === 'countersign-attestation/2') parts.push(subject)
  else return typeof version === 'string'
  return parts.every(isPlainObject)
}
