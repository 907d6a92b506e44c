import { hash } from 'node:crypto'
import { canTellTime, type Policy, type PolicyLog } from '@countersign/policy/core'
import {
  type AddressItem,
  type Approval,
  assertAuthorizationAllowed,
  type ContentChain,
  computeCommitment,
  findContentChain,
  type Hex,
  hashAuthorization,
  hashContent,
  hashOwner,
  hashParsedTransaction,
  isOffChain,
  type OffChainItem,
  type Opening,
  type OpeningContent,
  parseAuthorization,
  parseSignature,
  parseTxMetadata,
  ServiceError,
  type Signed,
  type SignedStatement,
  type SignItem,
  type SignItemError,
  type Statement,
  type StatementV2,
  type TransactionItem,
  tags,
  toHex,
  toPrefixedHex,
  toSessionName,
  toStatementText,
  type VaultUse,
} from '@countersign/protocol/core'
import { checkStamp } from '../grant/checkStamp.ts'
import { checkGrant, type Grant } from '../grant/grant.ts'
import type { Keyring } from '../keys/deriveKey.ts'
import type { Random } from '../ports.ts'
import { type CheckVaultDeps, checkVault, findPolicy, refusedKind, type VaultRules } from '../vault/checkVault.ts'
import { signRecoverable } from './secp256k1.ts'
import { toFlatJson } from './toFlatJson.ts'

/** A statement and its leaf, not yet covered by a quote. It must not leave the enclave before that. */
export type SignedItem = SignedStatement & {
  leaf: Uint8Array<ArrayBuffer>
  /** The log cosignatures that the vault's policy requires. */
  needs?: PolicyLog
}

export type SignItemDeps = CheckVaultDeps & {
  keyring: Keyring
  now: number
  random: Random
  /** The code that accounts may be delegated to. */
  implementations: readonly Hex[]
  /** The chains to sign for. Undefined: any. */
  chainIds?: readonly number[] | undefined
}

/** The members that all statements have. */
type Facts = Pick<Statement, 'address' | 'coordinatorKey' | 'keyId' | 'publicKey' | 'signedAt'>

/** The members that only statements of version 2 have: what authorized the request. */
type Authority = Pick<StatementV2, 'session' | 'rule'>

type SigningItem = Exclude<SignItem, AddressItem>

/** Why an item can't be signed, by the code of the protocol's own check. */
const CONTENT_ERRORS = [
  'invalid_request',
  'invalid_tx_metadata',
  'message_too_large',
  'invalid_message',
  'invalid_typed_data',
  'authorization_not_allowed',
] as const satisfies SignItemError['error'][]

/**
 * Checks one item and signs it. Never signs a bare hash: the content is rebuilt from its fields, and a transaction must hash to the digest
 * that the caller named.
 */
export function signItem(
  deps: SignItemDeps,
  item: SignItem,
  { coordinatorKey, rules }: { coordinatorKey: string; rules?: VaultRules | undefined },
): SignedItem | SignItemError {
  const { keyring, now } = deps
  const grant = checkGrant(keyring, { grant: item.grant, sid: item.sid, now })
  if ('fault' in grant) return { error: grant.fault }
  const wallet = keyring.describe(grant.owner)
  if (grant.keyId !== wallet.keyId || grant.address !== wallet.address) return { error: 'key_binding_mismatch' }
  const name = item.vault === undefined ? grant.owner : { owner: grant.owner, policy: item.vault.policy }
  const { keyId, address, publicKey } = item.vault === undefined ? wallet : keyring.describe(name)
  if (item.keyId !== keyId) return { error: 'key_binding_mismatch' }

  const facts: Facts = { address, coordinatorKey, keyId, publicKey, signedAt: new Date(now).toISOString() }
  const authority: Authority = { session: toSession(grant, address), rule: item.vault?.rule ?? null }
  const read = item.kind === 'address' ? { item, digest: null } : readItem(item, deps.implementations)
  if ('error' in read) return read
  const vaultRule = item.vault === undefined ? null : { policy: item.vault.policy, rule: authority.rule }
  const request = { address, vault: vaultRule, kind: item.kind, digest: read.digest }
  const fault = checkStamp(deps, { grant, stamp: item.stamp, request, now })
  if (fault !== undefined) return { error: fault }
  if (read.digest === null) return stateAddress(deps, read.item, { facts, rules, grant, authority })
  if (item.kind === 'authorization' && item.vault !== undefined) return refusedKind
  const { digest } = read
  if (!isChainAllowed(read.item, deps.chainIds)) return { error: 'invalid_request' }
  const { vault } = read.item
  const policy = vault && findPolicy(deps, vault, rules)
  if (policy !== undefined && 'error' in policy) return policy
  if (vault !== undefined && policy !== undefined) {
    const asked = { item: read.item, vault, policy, sample: rules?.sample, address, digest, now }
    const refusal = checkVault(deps, asked)
    if (refusal !== undefined) return refusal
  }
  const signature = keyring.withPrivateKey(name, (privateKey) => signDigest(digest, privateKey))
  return toSignedItem(toSigned(deps, { ...read, signature, facts, authority }), policy)
}

/** `policy` belongs to the vault, which has allowed the item. */
function toSignedItem(signed: SignedStatement, policy: Policy | undefined): SignedItem {
  return { ...signed, leaf: toLeaf(signed.statement), ...(policy?.log && { needs: policy.log }) }
}

/**
 * Requires that the rules are known here and that the sample counts for their schedule: a quote must not recommend an address whose vault
 * could never sign.
 */
function stateAddress(
  deps: SignItemDeps,
  item: AddressItem,
  { facts, rules, grant, authority }: StateAddressParameters,
): SignedItem | SignItemError {
  const { vault } = item
  const policy = vault === undefined ? undefined : findPolicy(deps, vault, rules)
  if (policy !== undefined && 'error' in policy) return policy
  const sources = rules?.sample === undefined ? [] : [rules.sample.source]
  if (policy !== undefined && !canTellTime(policy, sources)) return { error: 'policy_not_supported' }
  const owner = toHex(hashOwner(deps.keyring.openOwner(facts.keyId, grant.identity)))
  const subject = { address: facts.address, policy: vault?.policy ?? null, owner }
  return toSignedItem(toSignedV2({ item, facts, authority }, { kind: 'address', subject }), policy)
}

type StateAddressParameters = { facts: Facts; rules: VaultRules | undefined; grant: Grant; authority: Authority }

/** How a statement names the session. */
function toSession({ clientKey }: Grant, address: Hex): string {
  return clientKey === null ? 'cookie' : toSessionName({ clientKey, address })
}

/** The content in its canonical form, and its hash. */
type Read<Item> = { item: Item; digest: Uint8Array }

type Made<Item> = Read<Item> & { signature: Uint8Array<ArrayBuffer>; facts: Facts; authority: Authority }

function toSigned({ random }: SignItemDeps, made: Made<SigningItem>): SignedStatement {
  const { item, digest, signature } = made
  if (item.kind === 'transaction') {
    // Version 1 has no field for a policy.
    return item.statementVersion === 1 && item.vault === undefined
      ? { statement: toStatement({ ...made, item }) }
      : toSignedV2(made, { kind: 'transaction', subject: toTransactionSubject({ ...made, item }) })
  }
  const bytes = { digest: toPrefixedHex(digest), signature: toPrefixedHex(signature) }
  if (item.kind === 'authorization') {
    const subject = { ...parseAuthorization(item.authorization), ...bytes }
    return toSignedV2(made, { kind: 'authorization', subject })
  }
  const opening = toOpening(item, bytes, random)
  const commitment = toHex(computeCommitment(opening))
  return { ...toSignedV2(made, { kind: 'off-chain', subject: { commitment } }), opening }
}

function toStatement({ item, signature, facts }: Made<TransactionItem>): Statement {
  return {
    ...facts,
    chainId: item.txMetadata.chainId,
    digest: item.digest,
    entropyHash: hash('sha256', Buffer.from(item.witness.valueHex, 'hex'), 'hex'),
    signature: toPrefixedHex(signature),
    txHash: toPrefixedHex(hashParsedTransaction(item.txMetadata, parseSignature(signature))),
    type: tags.signing,
  }
}

function toSignedV2(
  { item: { witness, vault }, facts, authority }: { item: SignItem; facts: Facts; authority: Authority },
  { kind, subject }: Signed,
): { statement: StatementV2; subject: Signed['subject'] } {
  const statement: StatementV2 = {
    ...facts,
    ...authority,
    // Equals `hashApprovals`: the request was accepted only with the list in canonical form.
    approvals: isApproved(vault) ? hash('sha256', `[${vault.approvals.map(toFlatJson).join()}]`, 'hex') : null,
    kind,
    policy: vault?.policy ?? null,
    subject: hash('sha256', `${tags.subject}\0${toFlatJson(subject)}`, 'hex'),
    type: tags.signingV2,
    witness: hash('sha256', toFlatJson(witness), 'hex'),
  }
  return { statement, subject }
}

function toTransactionSubject({ item, signature, facts }: Made<TransactionItem>) {
  const { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = item.txMetadata
  return {
    chainId,
    data,
    digestSigned: item.digest,
    from: facts.address,
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas,
    nonce,
    signature: toPrefixedHex(signature),
    signedAt: facts.signedAt,
    to,
    txHash: toPrefixedHex(hashParsedTransaction(item.txMetadata, parseSignature(signature))),
    value,
  }
}

/** Both salts are fresh. Without them, a commitment would reveal a message that is easy to guess. */
function toOpening(
  item: OffChainItem,
  { digest, signature }: { digest: Hex; signature: Hex },
  random: Random,
): Opening {
  const { kind, content, vault } = item
  const approvals = isApproved(vault) ? { approvals: vault.approvals } : {}
  const half = { salt: toHex(random(32)), kind, digest, content, ...approvals } as OpeningContent
  return { content: half, signature: { salt: toHex(random(32)), signature } }
}

/** The protocol's `hashLeaf` with the faster SHA-256, for a statement built just above. */
function toLeaf(statement: Statement | StatementV2): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hash('sha256', `\0${toStatementText(statement)}`, 'buffer'))
}

/** Rebuilds the content and hashes it. */
function readItem(item: SigningItem, implementations: readonly Hex[]): Read<SigningItem> | SignItemError {
  try {
    if (isOffChain(item)) return { item, digest: hashContent(item) }
    if (item.kind === 'authorization') {
      assertAuthorizationAllowed(item.authorization, implementations)
      return { item, digest: hashAuthorization(item.authorization) }
    }
    // EIP-1559 only: other types have fields that don't exist here.
    const txMetadata = parseTxMetadata(item.txMetadata)
    const digest = hashParsedTransaction(txMetadata)
    if (toPrefixedHex(digest) !== item.digest) return { error: 'digest_mismatch' }
    return { item: { ...item, txMetadata }, digest }
  } catch (error) {
    const code = CONTENT_ERRORS.find((one) => error instanceof ServiceError && error.code === one)
    if (code === undefined) throw error
    return { error: code }
  }
}

/** Content that is valid on every chain is allowed only if all chains are. */
function isChainAllowed(item: SigningItem, chainIds: readonly number[] | undefined): boolean {
  if (chainIds === undefined) return true
  const chain = findChain(item)
  return chain === 'none' || chainIds.some((allowed) => BigInt(allowed) === chain)
}

function findChain(item: SigningItem): ContentChain {
  if (isOffChain(item)) return findContentChain(item)
  return BigInt(item.kind === 'transaction' ? item.txMetadata.chainId : item.authorization.chainId)
}

function isApproved(vault: VaultUse | undefined): vault is VaultUse & { approvals: readonly Approval[] } {
  return vault?.approvals !== undefined && vault.approvals.length > 0
}

/** RFC 6979, low s, r ‖ s ‖ v with v 27 or 28. libsecp256k1 gives a recovery id above 1 once in 2^127. */
function signDigest(digest: Uint8Array, privateKey: Uint8Array): Uint8Array<ArrayBuffer> {
  const { signature, recoveryId } = signRecoverable(digest, privateKey)
  if (recoveryId > 1) throw new Error('a signature that no transaction can carry')
  const bytes = new Uint8Array(65)
  bytes.set(signature)
  bytes[64] = 27 + recoveryId
  return bytes
}
