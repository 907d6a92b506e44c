import type { Hex, SignItemError, Statement, TransactionItem, TxMetadata } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { CoordinatorError, type CoordinatorErrorCode } from '../errors.ts'
import type { Clock, Entropy, KeyEnclave, SelfReport } from '../ports.ts'
import { assertItemSigned } from './checkBatch.ts'
import type { SignatureChecker } from './checkSignatures.ts'
import type { Committed, VerifiedSigning } from './commit.ts'
import type { Progress } from './gather.ts'
import type { BatchVerifier, VerifiedBatch } from './verifyBatch.ts'

export type SignDeps = {
  entropy: Pick<Entropy, 'take'>
  enclave: Pick<KeyEnclave, 'signTransactions'>
  selfReport: Pick<SelfReport, 'publicKey'>
  signatures: SignatureChecker
  clock: Clock
  verifyBatch: BatchVerifier
  commit(signing: VerifiedSigning): Promise<Committed>
}

/** One signing that a signed-in user asked for; digest and transaction have been compared already. */
export type SignDigestRequest = {
  sid: string
  grant: string
  keyId: string
  walletId: string
  address: Hex
  digest: Hex
  txMetadata: TxMetadata
}

/** Signatures that are checked together: those of the first part are stored while those of the next are checked. */
const PART = 32

export type SignDigestResult = Committed
type SignProgress = Progress<SignDigestRequest, SignDigestResult>

/**
 * `POST /sign/digest`, for the requests gathered into one batch. The numbers are the steps of the specification; the first, whose
 * key it is, is `findSigner`.
 */
export async function signDigests(
  deps: SignDeps,
  asked: readonly SignDigestRequest[],
  { onSent, answer }: SignProgress,
): Promise<void> {
  const witnesses = await deps.entropy.take(asked.length) // 2
  // As many as there are samples: those who asked last have none.
  const requests = asked.slice(0, witnesses.length)
  for (const request of asked.slice(witnesses.length)) answer(request, failed(noSample()))
  const items = requests.map((request, index) => toSignItem(request, witnesses[index]))
  const beganAt = deps.clock.now()
  const { batches, results, config } = await deps.enclave.signTransactions(items) // 3
  const call = { beganAt, endedAt: deps.clock.now() }
  onSent()

  const collected = batches.map((): Collected[] => [])
  for (const [index, request] of requests.entries()) {
    const result = results[index]
    const item = items[index]
    const witness = witnesses[index]
    if (result === undefined || item === undefined || witness === undefined) {
      answer(request, failed(new CoordinatorError('internal', 'a result is missing')))
      continue
    }
    if ('error' in result) {
      answer(request, failed(toItemError(result)))
      continue
    }
    try {
      const batch = batches[result.batch]
      if (batch === undefined) throw new CoordinatorError('attestation_invalid', 'the enclave’s answer does not hold')
      const expected = { item, address: request.address, coordinatorKey: deps.selfReport.publicKey, call }
      const statement = assertItemSigned(expected, result, batch)
      collected[result.batch]?.push({ request, statement, leafIndex: result.leafIndex, witness })
    } catch (error) {
      answer(request, failed(error))
    }
  }

  const parts: Promise<void>[] = []
  for (const [index, batch] of batches.entries()) {
    const items = collected[index] ?? []
    if (items.length === 0) continue
    const times = items.map(({ statement }) => Date.parse(statement.signedAt))
    const at = { first: Math.min(...times), last: Math.max(...times) }
    const verified = deps.verifyBatch(batch, config, at) // 4
    for (let start = 0; start < items.length; start += PART) {
      parts.push(settlePart(deps, verified, items.slice(start, start + PART), answer))
    }
  }
  await Promise.all(parts)
}

type Collected = { request: SignDigestRequest; statement: Statement; leafIndex: number; witness: Witness }

/** Steps 4 to 6 for a part of what one quote covers. */
async function settlePart(
  deps: SignDeps,
  verified: Promise<VerifiedBatch>,
  items: readonly Collected[],
  answer: SignProgress['answer'],
) {
  try {
    const [batch, isGood] = await Promise.all([
      verified,
      deps.signatures.check(items.map(({ statement, request }) => ({ ...statement, txMetadata: request.txMetadata }))),
    ])
    await Promise.all(
      items.map(async ({ request, ...rest }, position) => {
        const { walletId, txMetadata } = request
        try {
          if (isGood[position] !== true) {
            throw new CoordinatorError('signature_invalid', 'the enclave’s signature is not of this wallet')
          }
          const value = await deps.commit({ batch, walletId, txMetadata, ...rest }) // 5
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

function toSignItem(request: SignDigestRequest, witness: Witness | undefined): TransactionItem {
  if (witness === undefined) throw noSample()
  const { sid, grant, keyId, digest, txMetadata } = request
  return { kind: 'transaction', statementVersion: 1, sid, grant, keyId, digest, txMetadata, witness }
}

function noSample() {
  return new CoordinatorError('entropy_unavailable', 'no entropy sample is available')
}

const ITEM_ERRORS: Record<SignItemError['error'], CoordinatorErrorCode> = {
  invalid_request: 'internal',
  invalid_tx_metadata: 'invalid_tx_metadata',
  // Of kinds that are not asked for.
  message_too_large: 'internal',
  invalid_message: 'internal',
  invalid_typed_data: 'internal',
  authorization_not_allowed: 'internal',
  digest_mismatch: 'digest_mismatch',
  grant_invalid: 'grant_invalid',
  session_expired: 'session_expired',
  key_binding_mismatch: 'key_binding_mismatch',
  quote_unavailable: 'enclave_unavailable',
  entropy_refused: 'entropy_unavailable',
  entropy_used: 'entropy_unavailable',
  entropy_memory_full: 'enclave_unavailable',
}

function toItemError({ error }: SignItemError): CoordinatorError {
  return new CoordinatorError(ITEM_ERRORS[error], 'the enclave refused to sign', { details: error })
}

function failed(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}
