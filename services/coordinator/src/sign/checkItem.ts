import { hash } from 'node:crypto'
import {
  type AddressItem,
  type Approval,
  type AuthorizationItem,
  assertOpening,
  assertStatement,
  assertStatementV2,
  computeCommitment,
  equalBytes,
  fromHex,
  type Hex,
  isLowerPrefixedHex,
  MAX_SAMPLE_AGE_MS,
  type OffChainItem,
  type Opening,
  type Placed,
  SAMPLE_TOLERANCE_MS,
  ServiceError,
  type Signed,
  type SignedBatch,
  type SignedStatement,
  type SignItem,
  type Statement,
  type StatementV2,
  type TransactionItem,
  type TxMetadata,
  tags,
  toAddress,
  toCanonicalJson,
  toHex,
  toStatementText,
} from '@countersign/protocol'
import { CoordinatorError, invalidAnswer } from '../errors.ts'
import type { SignatureClaim } from './checkSignatures.ts'

/** What an item must have been signed as, in a call that began and ended then. */
export type ExpectedItem = {
  item: SignItem
  /** Of what the item asks to sign. */
  digest: Hex
  address: Hex
  coordinatorKey: string
  call: { beganAt: number; endedAt: number }
}

type Result = SignedStatement & Pick<Placed, 'leafIndex'>

/** What a signing of either version states, as far as it is stored. */
export type Stated =
  | { version: 1; statement: Statement; txMetadata: TxMetadata }
  | { version: 2; statement: StatementV2; signed: Signed; approvals?: readonly Approval[] }

/** An item that was signed, and what is still to be checked of it. `opening` goes to the caller and nowhere else. For an address nothing is signed. */
export type CheckedItem = { stated: Stated; claim: SignatureClaim | undefined; opening?: Opening }

/** The statement is about what was asked, and it is in the batch that the quote covers. Throws `attestation_invalid`. */
export function assertItemSigned(expected: ExpectedItem, result: Result, batch: SignedBatch): CheckedItem {
  const { item } = expected
  try {
    const isOld = item.kind === 'transaction' && item.statementVersion === 1
    const checked = isOld ? assertVersion1({ ...expected, item }, result) : assertVersion2(expected, result)
    const { statement } = checked.stated
    if (hashLeafFast(statement) !== batch.leaves[result.leafIndex])
      throw invalidAnswer('the statement is not in the batch')
    assertSignedAt(Date.parse(statement.signedAt), expected)
    return checked
  } catch (cause) {
    // Not the error itself: one about an opening could show some of it.
    if (cause instanceof ServiceError && !(cause instanceof CoordinatorError)) throw invalidAnswer(cause.code)
    throw cause
  }
}

function assertVersion1(expected: ExpectedItem & { item: TransactionItem }, { statement }: Result): CheckedItem {
  const { item, address, coordinatorKey } = expected
  assertStatement(statement)
  const isAsked =
    statement.digest === item.digest &&
    statement.keyId === item.keyId &&
    statement.address === address &&
    statement.chainId === item.txMetadata.chainId &&
    statement.entropyHash === hash('sha256', Buffer.from(item.witness.valueHex, 'hex'), 'hex') &&
    statement.coordinatorKey === coordinatorKey
  if (!isAsked) throw somethingElse()
  const { digest, signature, publicKey, txHash } = statement
  const { txMetadata } = item
  return {
    stated: { version: 1, statement, txMetadata },
    claim: { digest, signature, publicKey, address, transaction: { txHash, txMetadata } },
  }
}

/** A statement of version 2 names what was signed by a hash: the subject is built here, from what was asked, and must have it. */
function assertVersion2(expected: ExpectedItem, result: Result): CheckedItem {
  const { item, address, coordinatorKey, digest } = expected
  const { statement } = result
  assertStatementV2(statement)
  const { signed, signature, opening } = toSigned(expected, result, statement)
  const isAsked =
    statement.kind === signed.kind &&
    statement.keyId === item.keyId &&
    statement.address === address &&
    statement.subject === hashSubjectFast(signed.subject) &&
    statement.witness === hashWitnessFast(item.witness) &&
    statement.policy === (item.vault?.policy ?? null) &&
    statement.approvals === hashGiven(item.vault?.approvals) &&
    statement.coordinatorKey === coordinatorKey
  if (!isAsked) throw somethingElse()
  if (signature === undefined) {
    // No signature shows that the key is that of the address.
    if (toAddress(fromHex(statement.publicKey)) !== address) throw somethingElse()
    return { stated: { version: 2, statement, signed }, claim: undefined }
  }
  const claim: SignatureClaim = { digest, signature, publicKey: statement.publicKey, address }
  if (item.kind === 'transaction' && signed.kind === 'transaction') {
    claim.transaction = { txHash: signed.subject.txHash, txMetadata: item.txMetadata }
  }
  // Those of what is signed off the chain are in its opening, and not for the store.
  const approvals = item.kind === 'transaction' ? item.vault?.approvals : undefined
  const stated = { version: 2 as const, statement, signed, ...(approvals && { approvals }) }
  return { stated, claim, ...(opening && { opening }) }
}

/** The protocol's `hashSubject`, with the faster SHA-256, of a subject whose members are in order: none of them needs escaping. */
function hashSubjectFast(subject: Signed['subject']): string {
  return hash('sha256', `${tags.subject}\0${JSON.stringify(subject)}`, 'hex')
}

/** The protocol's `hashWitness`, likewise: a sample was checked before it was sent. Rounds of a beacon are few. */
function hashWitnessFast(witness: SignItem['witness']): string {
  if ('kind' in witness) return hash('sha256', toCanonicalJson(witness), 'hex')
  const { publicKey, sequence, signatureHex, source, timestamp, valueHex } = witness
  return hash('sha256', JSON.stringify({ publicKey, sequence, signatureHex, source, timestamp, valueHex }), 'hex')
}

/** The policy's `hashApprovals` of a list that was asserted when the request was read, with the faster SHA-256. */
function hashGiven(approvals: readonly Approval[] | undefined): string | null {
  return approvals === undefined ? null : hash('sha256', toCanonicalJson(approvals), 'hex')
}

/** The subject's members are in the order of canonical JSON. */
type SignedAs = { signed: Signed; signature: Hex | undefined; opening?: Opening }

function toSigned(expected: ExpectedItem, result: Result, statement: StatementV2): SignedAs {
  const { item } = expected
  const subject: object = 'subject' in result ? result.subject : {}
  if (item.kind === 'transaction') return toTransaction(expected, item, subject, statement)
  if (item.kind === 'authorization') return toAuthorization(expected, item, subject)
  if (item.kind === 'address') return toStatedAddress(expected, item)
  return toOffChain(expected, item, 'opening' in result ? result.opening : undefined)
}

function toTransaction(
  { address, digest }: ExpectedItem,
  { txMetadata }: TransactionItem,
  subject: object,
  { signedAt }: StatementV2,
): SignedAs {
  const { chainId, to, nonce, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = txMetadata
  const signature = readHex(subject, 'signature', 65)
  return {
    signed: {
      kind: 'transaction',
      subject: {
        chainId,
        data: data.toLowerCase() as Hex,
        digestSigned: digest,
        from: address,
        gas,
        maxFeePerGas,
        maxPriorityFeePerGas,
        nonce,
        signature,
        signedAt,
        to: to.toLowerCase() as Hex,
        txHash: readHex(subject, 'txHash', 32),
        value,
      },
    },
    signature,
  }
}

function toAuthorization({ digest }: ExpectedItem, item: AuthorizationItem, subject: object): SignedAs {
  const { chainId, address, nonce } = item.authorization
  const signature = readHex(subject, 'signature', 65)
  return { signed: { kind: 'authorization', subject: { address, chainId, digest, nonce, signature } }, signature }
}

function toStatedAddress({ address }: ExpectedItem, { vault }: AddressItem): SignedAs {
  return { signed: { kind: 'address', subject: { address, policy: vault?.policy ?? null } }, signature: undefined }
}

/** The opening must be of exactly what was asked, or the caller could never show it. */
function toOffChain({ digest }: ExpectedItem, item: OffChainItem, opening: unknown): SignedAs {
  assertOpening(opening)
  const { content, signature } = opening
  if (typeof content === 'string' || typeof signature === 'string')
    throw invalidAnswer('a half of the opening is withheld')
  const isAsked =
    content.kind === item.kind &&
    content.digest === digest &&
    isSame(content.approvals, item.vault?.approvals) &&
    isSame(content.content, item.content)
  if (!isAsked) throw invalidAnswer('the opening is of something else')
  const subject = { commitment: toHex(computeCommitment(opening)) }
  return { signed: { kind: 'off-chain', subject }, signature: signature.signature, opening }
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === undefined || right === undefined) return left === right
  return equalBytes(toCanonicalJson(left), toCanonicalJson(right))
}

/** Verifiers refuse a signature that is not dated shortly after its sample; one that is not from now has a wrong clock. */
export function assertSignedAt(signedAt: number, { item, call: { beganAt, endedAt } }: ExpectedItem) {
  const sampledAt = Date.parse(item.witness.timestamp)
  if (signedAt < beganAt - SAMPLE_TOLERANCE_MS) throw invalidAnswer('the enclave’s clock is behind')
  if (signedAt > endedAt + SAMPLE_TOLERANCE_MS) throw invalidAnswer('the enclave’s clock is ahead')
  if (signedAt < sampledAt - SAMPLE_TOLERANCE_MS) throw invalidAnswer('the signature is older than its sample')
  if (signedAt > sampledAt + MAX_SAMPLE_AGE_MS) throw invalidAnswer('the sample was too old when it was used')
}

/** The protocol's `hashLeaf` of a statement that was asserted, in hex, with the faster SHA-256. */
function hashLeafFast(statement: Statement | StatementV2): string {
  return hash('sha256', `\0${toStatementText(statement)}`, 'hex')
}

function readHex(subject: object, name: string, bytes: number): Hex {
  const value: unknown = Object.hasOwn(subject, name) ? subject[name as keyof typeof subject] : undefined
  if (!isLowerPrefixedHex(value, bytes)) throw invalidAnswer(`the subject has no ${name}`)
  return value
}

function somethingElse() {
  return invalidAnswer('the statement is about something else')
}
