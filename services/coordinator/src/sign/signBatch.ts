import { parsePolicy } from '@countersign/policy'
import type {
  Approval,
  Authorization,
  Hex,
  MessageContent,
  Opening,
  Placed,
  SignItem,
  SignItemError,
  SignItemResult,
  TxMetadata,
  TypedData,
} from '@countersign/protocol'
import { CoordinatorError, type CoordinatorErrorCode } from '../errors.ts'
import type { Clock, Entropy, KeyEnclave, SelfReport } from '../ports.ts'
import type { AnyWitness, StoredPolicy } from '../store/types.ts'
import { assertItemSigned, type CheckedItem } from './checkItem.ts'
import type { SignatureChecker } from './checkSignatures.ts'
import type { Committed, VerifiedSigning } from './commit.ts'
import type { Progress } from './gather.ts'
import { approvalsMissing, policyRefused } from './vaultErrors.ts'
import type { BatchVerifier, VerifiedBatch } from './verifyBatch.ts'

export type SignDeps = {
  entropy: Pick<Entropy, 'take'>
  enclave: Pick<KeyEnclave, 'signItems'>
  selfReport: Pick<SelfReport, 'publicKey'>
  signatures: SignatureChecker
  clock: Clock
  verifyBatch: BatchVerifier
  commit(signing: VerifiedSigning): Promise<Committed>
  /** Of the receipts of transactions. Everything else has receipts of version 2. */
  receiptVersion: 1 | 2
}

/** What is to be signed, parsed; `digest` is that of the rest. */
export type Asked = { digest: Hex } & (
  | { kind: 'transaction'; txMetadata: TxMetadata }
  | { kind: 'authorization'; authorization: Authorization }
  | { kind: 'message'; content: MessageContent }
  | { kind: 'typed-data'; content: TypedData }
  /** A statement about the address of the wallet; the digest is that of its subject. */
  | { kind: 'address' }
)

/** One signing that a signed-in user asked for. */
export type SigningRequest = {
  sid: string
  grant: string
  keyId: string
  walletId: string
  address: Hex
  /** Where the wallet is a vault: its rules, and who approves. */
  vault?: { policy: StoredPolicy; approvals?: readonly Approval[] | undefined } | undefined
  asked: Asked
}

/** Signatures that are checked together: those of the first part are stored while those of the next are checked. */
const PART = 32

/** The opening is of what is signed off the chain. It is not kept. For an address nothing is signed. */
export type SigningResult = { signature: Hex | null; slug: string; opening?: Opening }
type SignProgress = Progress<SigningRequest, SigningResult>

/**
 * `POST /sign/digest` and its like, for the requests gathered into one batch. The numbers are the steps of the specification; the first, whose
 * key it is, is `findSigner`.
 */
export async function signBatch(
  deps: SignDeps,
  asked: readonly SigningRequest[],
  { onSent, answer }: SignProgress,
): Promise<void> {
  const witnesses = await deps.entropy.take(asked.length) // 2
  // As many as there are samples: those who asked last have none.
  const requests = asked.slice(0, witnesses.length)
  for (const request of asked.slice(witnesses.length)) answer(request, failed(noSample()))
  const sent = requests.map((request, index) => toSending(deps, request, witnesses[index]))
  const unknown = await signItems(deps, sent, { onSent, answer })
  // An enclave that has just started: it used none of these samples.
  if (unknown.length > 0) await signItems(deps, unknown, { onSent, answer }, readPolicies(unknown))
}

type Sending = { request: SigningRequest; item: SignItem; witness: AnyWitness }

/** One call of the enclave, and what follows. Returns those whose policy it does not know, unless it was sent along. */
async function signItems(
  deps: SignDeps,
  sent: readonly Sending[],
  { onSent, answer }: SignProgress,
  policies?: readonly string[],
): Promise<Sending[]> {
  const beganAt = deps.clock.now()
  const items = sent.map(({ item }) => item)
  const { batches, results, config, settings } = await deps.enclave.signItems(items, policies) // 3
  const call = { beganAt, endedAt: deps.clock.now() }
  const unknown = policies === undefined ? sent.filter((_, index) => isPolicyUnknown(results[index])) : []
  if (unknown.length === 0) onSent()

  const collected = batches.map((): Collected[] => [])
  for (const [index, sending] of sent.entries()) {
    const { request, item, witness } = sending
    const result = results[index]
    if (unknown.includes(sending)) continue
    if (result === undefined) {
      answer(request, failed(new CoordinatorError('internal', 'a result is missing')))
      continue
    }
    if ('error' in result) {
      answer(request, failed(toItemError(result, request)))
      continue
    }
    try {
      const batch = batches[result.batch]
      if (batch === undefined || !('statement' in result))
        throw new CoordinatorError('attestation_invalid', 'the enclave’s answer does not hold')
      const { address, asked } = request
      const expected = { item, digest: asked.digest, address, coordinatorKey: deps.selfReport.publicKey, call }
      const checked = assertItemSigned(expected, result, batch)
      collected[result.batch]?.push({ request, checked, leafIndex: result.leafIndex, witness })
    } catch (error) {
      answer(request, failed(error))
    }
  }

  const parts: Promise<void>[] = []
  for (const [index, batch] of batches.entries()) {
    const items = collected[index] ?? []
    if (items.length === 0) continue
    const times = items.map(({ checked }) => Date.parse(checked.stated.statement.signedAt))
    const at = { first: Math.min(...times), last: Math.max(...times) }
    const isReleased = items.some(({ checked }) => checked.stated.version === 2)
    const verified = deps.verifyBatch(batch, { config, settings }, { at, isReleased }) // 4
    for (let start = 0; start < items.length; start += PART) {
      parts.push(settlePart(deps, verified, items.slice(start, start + PART), answer))
    }
  }
  await Promise.all(parts)
  return unknown
}

function isPolicyUnknown(result: SignItemResult | Placed | undefined): boolean {
  return result !== undefined && 'error' in result && result.error === 'policy_unknown'
}

/** Each once, however many items name it. */
function readPolicies(sent: readonly Sending[]): string[] {
  return [...new Set(sent.flatMap(({ request: { vault } }) => vault?.policy.text ?? []))]
}

type Collected = { request: SigningRequest; checked: CheckedItem; leafIndex: number; witness: AnyWitness }

/** Steps 4 to 6 for a part of what one quote covers. */
async function settlePart(
  deps: SignDeps,
  verified: Promise<VerifiedBatch>,
  items: readonly Collected[],
  answer: SignProgress['answer'],
) {
  try {
    const claims = items.flatMap(({ checked }) => checked.claim ?? [])
    const [batch, isGood] = await Promise.all([verified, deps.signatures.check(claims)])
    const good = new Set(claims.filter((_, position) => isGood[position] === true))
    await Promise.all(
      items.map(async ({ request, checked, leafIndex, witness }) => {
        const { stated, claim, opening } = checked
        try {
          if (claim !== undefined && !good.has(claim)) {
            throw new CoordinatorError('signature_invalid', 'the enclave’s signature is not of this wallet')
          }
          const { walletId } = request
          const { signature, slug } = await deps.commit({ batch, walletId, stated, leafIndex, witness }) // 5
          // A signature that is not stored goes from the enclave to the caller.
          const value = { signature: signature ?? claim?.signature ?? null, slug, ...(opening && { opening }) }
          answer(request, { status: 'fulfilled', value }) // 6
        } catch (error) {
          answer(request, failed(error))
        }
      }),
    )
  } catch (error) {
    for (const { request } of items) answer(request, failed(error))
  }
}

function toSending(
  { receiptVersion }: Pick<SignDeps, 'receiptVersion'>,
  request: SigningRequest,
  witness: AnyWitness | undefined,
): Sending {
  if (witness === undefined) throw noSample()
  return { request, item: toItem(receiptVersion, request, witness), witness }
}

function toItem(
  receiptVersion: 1 | 2,
  { sid, grant, keyId, vault, asked }: SigningRequest,
  witness: AnyWitness,
): SignItem {
  const approvals = vault?.approvals
  const use = vault && { vault: { policy: vault.policy.hash, ...(approvals && { approvals }) } }
  const granted = { sid, grant, keyId, ...use, witness }
  switch (asked.kind) {
    case 'transaction': {
      const { kind, digest, txMetadata } = asked
      // Version 1 knows no vaults.
      const statementVersion = vault === undefined ? receiptVersion : 2
      return { kind, statementVersion, ...granted, digest, txMetadata }
    }
    case 'authorization':
      return { kind: asked.kind, ...granted, authorization: asked.authorization }
    case 'message':
      return { kind: asked.kind, ...granted, content: asked.content }
    case 'typed-data':
      return { kind: asked.kind, ...granted, content: asked.content }
    case 'address':
      return { kind: asked.kind, ...granted }
  }
}

function noSample() {
  return new CoordinatorError('entropy_unavailable', 'no entropy sample is available')
}

const ITEM_ERRORS: Record<SignItemError['error'], CoordinatorErrorCode> = {
  invalid_request: 'internal',
  invalid_tx_metadata: 'invalid_tx_metadata',
  message_too_large: 'message_too_large',
  invalid_message: 'invalid_message',
  invalid_typed_data: 'invalid_typed_data',
  authorization_not_allowed: 'authorization_not_allowed',
  digest_mismatch: 'digest_mismatch',
  grant_invalid: 'grant_invalid',
  session_expired: 'session_expired',
  key_binding_mismatch: 'key_binding_mismatch',
  quote_unavailable: 'enclave_unavailable',
  entropy_refused: 'entropy_unavailable',
  entropy_used: 'entropy_unavailable',
  entropy_memory_full: 'enclave_unavailable',
  policy_unknown: 'enclave_unavailable',
  policy_not_supported: 'policy_refused',
  policy_refused: 'policy_refused',
  approvals_missing: 'approvals_missing',
  approval_invalid: 'approval_invalid',
}

function toItemError(result: SignItemError, { vault }: SigningRequest): CoordinatorError {
  if (result.error === 'policy_refused' && vault !== undefined) {
    return policyRefused(parsePolicy(Buffer.from(vault.policy.text)), result.details)
  }
  if (result.error === 'approvals_missing') return approvalsMissing(result.missing)
  const details = result.error === 'approval_invalid' ? `approvals[${result.index}]: ${result.reason}` : result.error
  return new CoordinatorError(ITEM_ERRORS[result.error], 'the enclave refused to sign', { details })
}

function failed(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}
