import type { Placed, PolicyRefusal, SignedBatch, SignItem, SignItemError, SignItemResult } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError, type CoordinatorErrorCode, invalidAnswer } from '../errors.ts'
import type { Clock, EnclaveTerms, Entropy, KeyEnclave, SelfReport } from '../ports.ts'
import type { AnyWitness } from '../store/types.ts'
import { assertItemSigned } from './checkItem.ts'
import { failed, type Placing, type Sending, type SigningRequest, type SignProgress } from './request.ts'
import { type SettleDeps, type Stating, settle } from './settle.ts'
import { type Logging, signLogged } from './signLogged.ts'
import { approvalsMissing, policyRefused } from './vaultErrors.ts'
import type { BatchVerifier } from './verifyBatch.ts'

export type SignDeps = SettleDeps & {
  entropy: Pick<Entropy, 'take'>
  enclave: Pick<KeyEnclave, 'signItems'>
  selfReport: Pick<SelfReport, 'publicKey'>
  clock: Clock
  verifyBatch: BatchVerifier
  /** Of the receipts of transactions. Everything else has receipts of version 2. */
  receiptVersion: 1 | 2
  /** For enclaves with a log. */
  logging?: Logging | undefined
  log: Pick<Log, 'warn'>
}

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
  const { unknown, settled } = await signItems(deps, sent, { onSent, answer })
  await Promise.all([settled, signUnknown(deps, unknown, { onSent, answer })])
}

/** An enclave that has just started knows no policies: it used none of these samples. */
async function signUnknown(deps: SignDeps, unknown: readonly Sending[], progress: SignProgress) {
  if (unknown.length === 0) return
  try {
    const { settled } = await signItems(deps, unknown, progress, readPolicies(unknown))
    await settled
  } catch (error) {
    for (const { request } of unknown) progress.answer(request, failed(error))
  }
}

/**
 * One call of the enclave. `unknown` are those whose policy it does not know, unless it was sent along; the others are answered when `settled`
 * is.
 */
async function signItems(
  deps: SignDeps,
  sent: readonly Sending[],
  { onSent, answer }: SignProgress,
  policies?: readonly string[],
): Promise<{ unknown: Sending[]; settled: Promise<void> }> {
  const beganAt = deps.clock.now()
  const items = sent.map(({ item }) => item)
  const { batches, results, ...rest } = await deps.enclave.signItems(items, policies) // 3
  const call = { beganAt, endedAt: deps.clock.now() }
  const unknown = policies === undefined ? sent.filter((_, index) => isPolicyUnknown(results[index])) : []
  if (unknown.length === 0) onSent()

  const placed: Placing[] = []
  for (const [index, sending] of sent.entries()) {
    const { request, item } = sending
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
    const { batch: number, leafIndex, ...stated } = result
    const batch = batches[number]
    if (batch === undefined) {
      answer(request, failed(invalidAnswer()))
      continue
    }
    const { address, asked } = request
    const expected = { item, digest: asked.digest, address, coordinatorKey: deps.selfReport.publicKey, call }
    placed.push({ ...sending, expected, batch, leafIndex, ...('statement' in stated && { stated }) })
  }
  const settled = 'log' in rest ? signLogged(deps, rest, placed, answer) : signUnlogged(deps, rest, placed, answer)
  return { unknown, settled }
}

/** Where nothing is logged, the statements came with the answer. */
async function signUnlogged(
  deps: SignDeps,
  terms: EnclaveTerms,
  placed: readonly Placing[],
  answer: SignProgress['answer'],
): Promise<void> {
  const stating = new Map<SignedBatch, Stating[]>()
  for (const { request, witness, expected, batch, leafIndex, stated } of placed) {
    try {
      if (stated === undefined) throw invalidAnswer()
      const checked = assertItemSigned(expected, { ...stated, leafIndex }, batch)
      const items = stating.get(batch) ?? []
      stating.set(batch, items)
      items.push({ request, checked, leafIndex, witness })
    } catch (error) {
      answer(request, failed(error))
    }
  }
  await Promise.all(
    [...stating].map(([batch, items]) => {
      const times = items.map(({ checked }) => Date.parse(checked.stated.statement.signedAt))
      const at = { first: Math.min(...times), last: Math.max(...times) }
      const isReleased = items.some(({ checked }) => checked.stated.version === 2)
      const verified = deps.verifyBatch(batch, terms, { at, isReleased }) // 4
      return settle(deps, verified, items, ({ request }, result) => answer(request, result))
    }),
  )
}

function isPolicyUnknown(result: SignItemResult | Placed | undefined): boolean {
  return result !== undefined && 'error' in result && result.error === 'policy_unknown'
}

/** Each once, however many items name it. */
function readPolicies(sent: readonly Sending[]): string[] {
  return [...new Set(sent.flatMap(({ request: { vault } }) => vault?.policy.text ?? []))]
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

/**
 * `assertAllowed` found the payment due by our clock. Samples are bought ahead, so the one sent may be older than the due time. A later
 * sample fixes it.
 */
function isOnlyEarly({ reasons, rules }: PolicyRefusal): boolean {
  return reasons.join() === 'nonce_not_due' && rules.some((rule) => rule.reasons.length === 0)
}

function sampleTooEarly() {
  const details = 'the schedule allows this transaction as soon as a sample proves the time'
  return new CoordinatorError('entropy_unavailable', 'no entropy sample is late enough', { details })
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
    return isOnlyEarly(result.details) ? sampleTooEarly() : policyRefused(vault.rules, result.details)
  }
  if (result.error === 'approvals_missing') return approvalsMissing(result.missing)
  const details = result.error === 'approval_invalid' ? `approvals[${result.index}]: ${result.reason}` : result.error
  return new CoordinatorError(ITEM_ERRORS[result.error], 'the enclave refused to sign', { details })
}
