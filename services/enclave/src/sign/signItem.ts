import { hash } from 'node:crypto'
import { canTellTime, type Policy, type PolicyLog, type Spend } from '@countersign/policy/core'
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
  type RevocationItem,
  ServiceError,
  type Signed,
  type SignedStatement,
  type SignItem,
  type SignItemError,
  type Statement,
  type StatementV2,
  type TransactionItem,
  tags,
  toCanonicalJson,
  toHex,
  toPrefixedHex,
  toSessionName,
  toStatementText,
  type VaultBudget,
  type VaultUse,
} from '@countersign/protocol/core'
import type { BudgetTable, LogTimes } from '../budget/budgetTable.ts'
import { readPolicyTimes } from '../budget/readPolicyTimes.ts'
import { checkStamp } from '../grant/checkStamp.ts'
import { checkGrant, type Grant } from '../grant/grant.ts'
import type { Keyring } from '../keys/deriveKey.ts'
import type { Random } from '../ports.ts'
import {
  type CheckVaultDeps,
  checkRevocationApprovals,
  checkVault,
  findPolicy,
  refusedKind,
  type VaultRules,
} from '../vault/checkVault.ts'
import { signRecoverable } from './secp256k1.ts'
import { toFlatJson } from './toFlatJson.ts'

/** A statement and its leaf, not yet covered by a quote. It must not leave the enclave before that. */
export type SignedItem = SignedStatement & {
  leaf: Uint8Array<ArrayBuffer>
  /** The log cosignatures that the vault's policy requires. */
  needs?: PolicyLog
  /** Present if the payment is counted against budgets: the keys that approved it, by their index among the approvers. */
  countedFor?: readonly number[]
  /** The approver whose key this statement revokes. */
  revokes?: number
}

export type SignItemDeps = CheckVaultDeps & {
  keyring: Keyring
  now: number
  random: Random
  /** The code that accounts may be delegated to. */
  implementations: readonly Hex[]
  /** The chains to sign for. Undefined: any. */
  chainIds?: readonly number[] | undefined
  budgets: BudgetTable
  /** The witnesses of the settings. */
  witnesses: readonly string[]
  /** Monotonic milliseconds. */
  elapsedMs(): number
}

type SignItemParameters = {
  coordinatorKey: string
  rules?: VaultRules | undefined
  log?: LogTimes | undefined
}

/** The members that all statements have. */
type Facts = Pick<Statement, 'address' | 'coordinatorKey' | 'keyId' | 'publicKey' | 'signedAt'>

/** The members that only statements of version 2 have: what authorized the request. */
type Authority = Pick<StatementV2, 'session' | 'rule'>

type SigningItem = Exclude<SignItem, AddressItem | RevocationItem>

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
  { coordinatorKey, rules, log }: SignItemParameters,
): SignedItem | SignItemError {
  const { keyring, now } = deps
  const access = readAccess(keyring, item, now)
  if ('error' in access) return access
  const { owner, grant } = access
  const name = item.vault === undefined ? owner : { owner, policy: item.vault.policy }
  const { keyId, address, publicKey } = keyring.describe(name)
  if (item.keyId !== keyId) return { error: 'key_binding_mismatch' }

  const facts: Facts = { address, coordinatorKey, keyId, publicKey, signedAt: new Date(now).toISOString() }
  const authority: Authority = { session: toSession(grant, address), rule: item.vault?.rule ?? null }
  const read = readAny(item, deps.implementations)
  if ('error' in read) return read
  const vaultRule = item.vault === undefined ? null : { policy: item.vault.policy, rule: authority.rule }
  const request = { address, vault: vaultRule, kind: item.kind, digest: read.digest }
  const fault = checkStamp(deps, { grant: grant ?? { clientKey: null }, stamp: item.stamp, request, now })
  if (fault !== undefined) return { error: fault }
  if (read.item.kind === 'revocation')
    return revokeKey(deps, read.item, { ...read, facts, rules, grant, authority, log })
  if (read.digest === null) {
    return grant === null
      ? { error: 'grant_invalid' }
      : stateAddress(deps, read.item, { facts, rules, grant, authority })
  }
  if (item.kind === 'authorization' && item.vault !== undefined) return refusedKind
  // The other kinds were handled above.
  const signing = read as Read<SigningItem>
  const { digest } = signing
  if (!isChainAllowed(signing.item, deps.chainIds)) return { error: 'invalid_request' }
  const { vault } = signing.item
  const policy = vault && findPolicy(deps, vault, rules)
  if (policy !== undefined && 'error' in policy) return policy
  let counted: Counted | undefined
  if (vault !== undefined && policy !== undefined) {
    const asked = { ...signing, vault, policy, sample: rules?.sample, address, now, hasSession: grant !== null }
    const verdict = checkVault(deps, asked)
    if ('error' in verdict) return verdict
    const { spends } = verdict
    const payment = spends && countPayment(deps, { keyId, digest, vault, policy, spends, log })
    if (payment !== undefined && 'error' in payment) return payment
    counted = payment
  }
  const signature = keyring.withPrivateKey(name, (privateKey) => signDigest(digest, privateKey))
  const signed = toSigned(deps, { ...signing, signature, facts, authority, budget: counted?.budget })
  return { ...toSignedItem(signed, policy), ...(counted && { countedFor: counted.approvers }) }
}

type Access = { owner: string; grant: Grant | null }

/** The owner of the key. Without a session, an item names them, and only approvals of their vault count. */
function readAccess(keyring: Keyring, { sid, grant: text, owner }: SignItem, now: number): Access | SignItemError {
  if (owner !== undefined) return { owner, grant: null }
  if (sid === undefined || text === undefined) return { error: 'invalid_request' }
  const grant = checkGrant(keyring, { grant: text, sid, now })
  if ('fault' in grant) return { error: grant.fault }
  const wallet = keyring.describe(grant.owner)
  if (grant.keyId !== wallet.keyId || grant.address !== wallet.address) return { error: 'key_binding_mismatch' }
  return { owner: grant.owner, grant }
}

type Counted = { budget: VaultBudget; approvers: readonly number[] }

type CountPaymentParameters = {
  keyId: string
  digest: Uint8Array
  vault: VaultUse
  policy: Policy
  spends: readonly Spend[]
  log: LogTimes | undefined
}

/** The last checks of a payment that the rules and the approvals allow: revoked keys, the witnesses' time, and the budgets. */
function countPayment(
  { budgets: table, witnesses, now, elapsedMs }: SignItemDeps,
  { keyId, digest, vault, policy, spends, log }: CountPaymentParameters,
): Counted | SignItemError {
  const { budgets = [], log: policyLog, approvers } = policy
  if (policyLog === null || !isCounting(table, witnesses, policyLog, log)) return { error: 'budget_unavailable' }
  const given = (vault.approvals ?? []).map(({ approver }) => approver)
  const index = given.findIndex((approver) => table.isRevoked(keyId, approver))
  if (index >= 0) return { error: 'approval_invalid', index, reason: 'approver_revoked' }
  const cosignatures = Object.entries(log?.timesS ?? {}).map(([witness, timestampS]) => ({ witness, timestampS }))
  // Only a whole quorum of liars can move this time forward. If one holds it back, the release is too late.
  const { passedS } = readPolicyTimes(cosignatures, policyLog)
  const verdict = table.count({
    keyId,
    digest: toHex(digest),
    budgets,
    spends,
    timeS: passedS === 0 ? undefined : passedS,
    nowS: Math.floor(now / 1000),
    elapsedMs: elapsedMs(),
  })
  if ('error' in verdict) return verdict
  return { budget: verdict, approvers: given.filter((approver) => approvers[approver]?.type === 'key') }
}

/** Budgets are counted only in their own log, and only if all of the policy's witnesses are asked here. */
function isCounting(
  table: BudgetTable,
  witnesses: readonly string[],
  { origin, witnesses: named }: PolicyLog,
  log: LogTimes | undefined,
): boolean {
  return (
    origin !== undefined &&
    log?.origin === origin &&
    table.isOf(origin) &&
    named.every((key) => witnesses.includes(key))
  )
}

type RevokeKeyParameters = Omit<StateAddressParameters, 'grant'> & {
  digest: Uint8Array | null
  grant: Grant | null
  log: LogTimes | undefined
}

/** Needs a session of the owner, or the approval of one passkey. */
function revokeKey(
  deps: SignItemDeps,
  item: RevocationItem,
  { digest, facts, rules, grant, authority, log }: RevokeKeyParameters,
): SignedItem | SignItemError {
  const { vault, key } = item
  if (vault === undefined || digest === null) return { error: 'invalid_request' }
  const policy = findPolicy(deps, vault, rules)
  if ('error' in policy) return policy
  const { approvers, budgets = [] } = policy
  const approver = approvers.findIndex(({ type, publicKey }) => type === 'key' && publicKey === key)
  if (approver < 0) return { error: 'invalid_request' }
  const approvals = checkRevocationApprovals(deps, {
    policy,
    vault,
    digest,
    address: facts.address,
    now: deps.now,
    required: grant === null ? 1 : 0,
  })
  if (approvals !== undefined) return approvals
  const isHere = policy.log !== null && isCounting(deps.budgets, deps.witnesses, policy.log, log)
  if (!isHere || deps.budgets.revoke(facts.keyId, approver, budgets.length) === undefined) {
    return { error: 'budget_unavailable' }
  }
  const subject = { address: facts.address, policy: vault.policy, key }
  return {
    ...toSignedItem(toSignedV2({ item, facts, authority }, { kind: 'revocation', subject }), policy),
    revokes: approver,
  }
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
function toSession(grant: Grant | null, address: Hex): string {
  if (grant === null) return 'none'
  const { clientKey } = grant
  return clientKey === null ? 'cookie' : toSessionName({ clientKey, address })
}

/** The content in its canonical form, and its hash. */
type Read<Item> = { item: Item; digest: Uint8Array }

type Made<Item> = Read<Item> & {
  signature: Uint8Array<ArrayBuffer>
  facts: Facts
  authority: Authority
  /** Present if the payment was counted. */
  budget?: VaultBudget | undefined
}

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
  const opening = toOpening(item, { ...bytes, budget: made.budget }, random)
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
    subject: hash('sha256', `${tags.subject}\0${toSubjectJson(subject)}`, 'hex'),
    type: tags.signingV2,
    witness: hash('sha256', toFlatJson(witness), 'hex'),
  }
  return { statement, subject }
}

/** Counted amounts are the only nested members. */
function toSubjectJson(subject: Signed['subject']): string {
  const isCounted = 'budget' in subject && subject.budget !== undefined
  return isCounted ? Buffer.from(toCanonicalJson(subject)).toString() : toFlatJson(subject)
}

function toTransactionSubject({ item, signature, facts, budget }: Made<TransactionItem>) {
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
    ...(budget && { budget }),
  }
}

/** Both salts are fresh. Without them, a commitment would reveal a message that is easy to guess. */
function toOpening(
  item: OffChainItem,
  { digest, signature, budget }: { digest: Hex; signature: Hex; budget: VaultBudget | undefined },
  random: Random,
): Opening {
  const { kind, content, vault } = item
  const approvals = isApproved(vault) ? { approvals: vault.approvals } : {}
  const counted = budget && { budget }
  const half = { salt: toHex(random(32)), kind, digest, content, ...approvals, ...counted } as OpeningContent
  return { content: half, signature: { salt: toHex(random(32)), signature } }
}

/** The protocol's `hashLeaf` with the faster SHA-256, for a statement built just above. */
function toLeaf(statement: Statement | StatementV2): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hash('sha256', `\0${toStatementText(statement)}`, 'buffer'))
}

/** The digest that a stamp or an approval covers. An address has none. */
function readAny(
  item: SignItem,
  implementations: readonly Hex[],
): Read<SigningItem> | { item: AddressItem; digest: null } | Read<RevocationItem> | SignItemError {
  if (item.kind === 'address') return { item, digest: null }
  if (item.kind === 'revocation') return { item, digest: hash('sha256', Buffer.from(item.key, 'hex'), 'buffer') }
  return readItem(item, implementations)
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
