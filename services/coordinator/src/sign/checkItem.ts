import { hash } from 'node:crypto'
import {
  type Approval,
  assertStatement,
  assertStatementV2,
  fromHex,
  MAX_SAMPLE_AGE_MS,
  SAMPLE_TOLERANCE_MS,
  ServiceError,
  type Signed,
  type SignedStatement,
  type SignItem,
  type Statement,
  type StatementV2,
  type TransactionItem,
  tags,
  toAddress,
  toCanonicalJson,
  toStatementText,
} from '@countersign/protocol'
import { CoordinatorError, invalidAnswer } from '../errors.ts'
import type { SignatureClaim } from './checkSignatures.ts'
import { toSigned } from './contents.ts'
import type { CheckedItem, SignJob } from './job.ts'

/** The expected values of a statement. */
type SignedJob = Pick<SignJob<'item' | 'leaf' | 'time'>, 'content' | 'address' | 'item' | 'leaf' | 'time'>

/** Checks that the statement answers the request and is in the batch that the quote covers. Throws `attestation_invalid`. */
export function assertItemSigned(job: SignedJob, result: SignedStatement): CheckedItem {
  const { item, leaf, time } = job
  try {
    const isOld = item.kind === 'transaction' && item.statementVersion === 1
    const checked = isOld ? assertVersion1({ ...job, item }, result) : assertVersion2(job, result)
    const { statement } = checked.stated
    if (hashLeafFast(statement) !== leaf.hash) throw invalidAnswer('the statement is not in the batch')
    // The quote is verified for the time in the log, which can't change.
    if (Date.parse(statement.signedAt) !== time.signedAtMs) throw invalidAnswer('the log entry has another time')
    return checked
  } catch (cause) {
    // Drop the original error: an error about an opening could reveal parts of it.
    if (cause instanceof ServiceError && !(cause instanceof CoordinatorError)) throw invalidAnswer(cause.code)
    throw cause
  }
}

function assertVersion1(
  { item, address, leaf }: SignedJob & { item: TransactionItem },
  { statement }: SignedStatement,
): CheckedItem {
  assertStatement(statement)
  const isAsked =
    statement.digest === item.digest &&
    statement.keyId === item.keyId &&
    statement.address === address &&
    statement.chainId === item.txMetadata.chainId &&
    statement.entropyHash === hash('sha256', Buffer.from(item.witness.valueHex, 'hex'), 'hex') &&
    statement.coordinatorKey === leaf.call.coordinatorKey
  if (!isAsked) throw somethingElse()
  const { digest, signature, publicKey, txHash } = statement
  const { txMetadata } = item
  return {
    stated: { version: 1, statement, txMetadata },
    claim: { digest, signature, publicKey, address, transaction: { txHash, txMetadata } },
  }
}

/** A statement of version 2 names the signed subject by its hash. Builds the expected subject from the request and compares the hashes. */
function assertVersion2(job: SignedJob, result: SignedStatement): CheckedItem {
  const { item, address, leaf, content } = job
  const { statement } = result
  assertStatementV2(statement)
  const { signed, signature, opening } = toSigned(job, result, statement)
  const isAsked =
    statement.kind === signed.kind &&
    statement.keyId === item.keyId &&
    statement.address === address &&
    statement.subject === hashSubjectFast(signed.subject) &&
    statement.witness === hashWitnessFast(item.witness) &&
    statement.policy === (item.vault?.policy ?? null) &&
    statement.rule === (item.vault?.rule ?? null) &&
    isOfAccess(statement.session, item) &&
    statement.approvals === hashGiven(item.vault?.approvals) &&
    statement.coordinatorKey === leaf.call.coordinatorKey
  if (!isAsked) throw somethingElse()
  // The approvals of off-chain signatures are in the opening and are not stored.
  const approvals = signed.kind === 'off-chain' ? undefined : item.vault?.approvals
  const stated = { version: 2 as const, statement, signed, ...(approvals && { approvals }) }
  if (signature === undefined) {
    // Without a signature, nothing else proves that the key belongs to the address.
    if (toAddress(fromHex(statement.publicKey)) !== address) throw somethingElse()
    return { stated, claim: undefined }
  }
  const claim: SignatureClaim = { digest: content.digest, signature, publicKey: statement.publicKey, address }
  if (item.kind === 'transaction' && signed.kind === 'transaction') {
    claim.transaction = { txHash: signed.subject.txHash, txMetadata: item.txMetadata }
  }
  return { stated, claim, ...(opening && { opening }) }
}

/** The grant has the client key, and the enclave rejects a stamp without one. */
function isOfAccess(session: string, { owner, stamp }: SignItem): boolean {
  if (owner !== undefined || session === 'none') return owner !== undefined && session === 'none'
  return (session === 'cookie') === (stamp === undefined)
}

/** The protocol's `hashSubject` with the faster SHA-256. The members are in canonical order and need no escaping. */
function hashSubjectFast(subject: Signed['subject']): string {
  return hash('sha256', `${tags.subject}\0${JSON.stringify(subject)}`, 'hex')
}

/** The protocol's `hashWitness` with the faster SHA-256. Samples were checked before they were sent. Beacon rounds are rare. */
export function hashWitnessFast(witness: SignItem['witness']): string {
  if ('kind' in witness) return hash('sha256', toCanonicalJson(witness), 'hex')
  const { publicKey, sequence, signatureHex, source, timestamp, valueHex } = witness
  return hash('sha256', JSON.stringify({ publicKey, sequence, signatureHex, source, timestamp, valueHex }), 'hex')
}

/** The policy's `hashApprovals` with the faster SHA-256, for a list that was validated with the request. */
function hashGiven(approvals: readonly Approval[] | undefined): string | null {
  return approvals === undefined ? null : hash('sha256', toCanonicalJson(approvals), 'hex')
}

/** Verifiers reject a signature dated long after its sample. A time that is not close to now means that a clock is wrong. */
export function assertSignedAt(signedAt: number, { item, leaf }: Pick<SignedJob, 'item' | 'leaf'>): void {
  const { beganAt, endedAt } = leaf.call
  const sampledAt = Date.parse(item.witness.timestamp)
  if (Number.isNaN(signedAt)) throw invalidAnswer('the statement has no time')
  if (signedAt < beganAt - SAMPLE_TOLERANCE_MS) throw invalidAnswer('the enclave’s clock is behind')
  if (signedAt > endedAt + SAMPLE_TOLERANCE_MS) throw invalidAnswer('the enclave’s clock is ahead')
  if (signedAt < sampledAt - SAMPLE_TOLERANCE_MS) throw invalidAnswer('the signature is older than its sample')
  if (signedAt > sampledAt + MAX_SAMPLE_AGE_MS) throw invalidAnswer('the sample was too old when it was used')
}

/** The protocol's `hashLeaf` in hex with the faster SHA-256, for a validated statement. */
function hashLeafFast(statement: Statement | StatementV2): string {
  return hash('sha256', `\0${toStatementText(statement)}`, 'hex')
}

function somethingElse() {
  return invalidAnswer('the statement is about other content')
}
