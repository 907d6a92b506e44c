import {
  type Approval,
  type Authorization,
  findContentChain,
  type Hex,
  hashAuthorization,
  hashContent,
  hashParsedTransaction,
  isAddress,
  isPrefixedHex,
  type OffChainContent,
  type ProtocolErrorCode,
  ServiceError,
  type SignDigestRequest,
  type Stamp,
  toPrefixedHex,
  type WalletUse,
} from '@countersign/protocol'
import { CoordinatorError, type CoordinatorErrorCode, invalidRequest } from '../errors.ts'
import type { SignContent } from '../sign/contents.ts'

/*
 * Converts bodies that `parseRequest` has read to the content to sign. The content is hashed here as in the enclave, so an invalid request
 * fails before it uses a key, a session or an entropy sample. Errors never repeat any part of a body.
 */

export type ChainLimits = {
  /** Undefined allows all chains. */
  allowedChainIds: readonly number[] | undefined
  /** Whether to reject content that is valid on every chain, too. */
  isChainRequired?: boolean
}

/** The wallet that signs, and the approvals. */
export type ParsedWalletUse = {
  wallet: Hex | undefined
  /** The index of the vault's rule that is to allow this. */
  rule: number | undefined
  approvals: readonly Approval[] | undefined
  stamp: Stamp | undefined
}

/** An empty list of approvals becomes undefined. */
export function parseWalletUse({ wallet, rule, approvals, stamp }: WalletUse): ParsedWalletUse {
  if (wallet === undefined && approvals !== undefined) throw invalidRequest('approvals are for a vault')
  if (wallet === undefined && rule !== undefined) throw invalidRequest('rule is for a vault')
  return { wallet: parseWallet(wallet), rule, approvals: approvals?.length === 0 ? undefined : approvals, stamp }
}

export function parseWallet(value: string | undefined, member = 'wallet'): Hex | undefined {
  if (value === undefined) return undefined
  if (!isPrefixedHex(value, 20)) throw invalidRequest(`${member} is not an address`)
  if (!isAddress(value)) throw invalidRequest(`${member} has a wrong address checksum (EIP-55)`)
  return value.toLowerCase() as Hex
}

/** Rejects a digest of another transaction: a user must never sign a transaction that differs from the metadata. */
export function toTransaction(request: SignDigestRequest, limits: ChainLimits): SignContent {
  const { to, data, ...rest } = request.txMetadata
  const txMetadata = { ...rest, to: to.toLowerCase() as Hex, data: data.toLowerCase() as Hex }
  const digest = request.digest.toLowerCase() as Hex
  if (toPrefixedHex(hashParsedTransaction(txMetadata)) !== digest) {
    throw new CoordinatorError('digest_mismatch', 'the digest does not match the transaction')
  }
  assertChainAllowed(BigInt(txMetadata.chainId), limits)
  return { kind: 'transaction', digest, txMetadata }
}

/** A permit for another chain can move assets there, so the limits for transactions apply to it, too. */
export function toOffChain(content: OffChainContent, limits: ChainLimits): SignContent {
  const digest = toPrefixedHex(translated(() => hashContent(content)))
  const chain = findContentChain(content)
  if (chain === 'any' && limits.isChainRequired) {
    const details = 'the content names no chain, so contracts on every chain could accept the signature'
    throw new CoordinatorError('chain_not_allowed', 'the service does not sign for every chain', { details })
  }
  if (typeof chain === 'bigint') assertChainAllowed(chain, limits)
  return { ...content, digest }
}

/** The enclave's settings list the allowed implementations. `createBatchSigner` rejects all others. */
export function toAuthorization(given: Authorization, limits: ChainLimits): SignContent {
  const authorization = { ...given, address: given.address.toLowerCase() as Hex }
  if (authorization.chainId === 0) {
    const details = 'chainId 0 is valid on every chain'
    throw new CoordinatorError('authorization_not_allowed', 'authorization not allowed', { details })
  }
  assertChainAllowed(BigInt(authorization.chainId), limits)
  return { kind: 'authorization', authorization, digest: toPrefixedHex(hashAuthorization(authorization)) }
}

/** Throws if the operator does not allow the chain. It takes a bigint, because chain ids in typed data can exceed 2^53 - 1. */
function assertChainAllowed(chainId: bigint, { allowedChainIds }: ChainLimits): void {
  if (allowedChainIds === undefined || allowedChainIds.some((allowed) => BigInt(allowed) === chainId)) return
  throw new CoordinatorError('chain_not_allowed', 'the service does not sign for this chain')
}

const codes = ['invalid_message', 'invalid_typed_data', 'message_too_large'] as const

/** Rethrows errors of the protocol with their code if it is one of `codes`, and with `invalid_request` otherwise. */
function translated<Value>(hash: () => Value): Value {
  try {
    return hash()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const { code, message, details } = error as ServiceError<ProtocolErrorCode>
    const known: CoordinatorErrorCode | undefined = codes.find((one) => one === code)
    throw new CoordinatorError(known ?? 'invalid_request', message, { details })
  }
}
