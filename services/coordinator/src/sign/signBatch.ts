import type {
  Authorization,
  Hex,
  MessageContent,
  Opening,
  SignItem,
  SignItemError,
  TxMetadata,
  TypedData,
} from '@countersign/protocol'
import { CoordinatorError, type CoordinatorErrorCode } from '../errors.ts'
import type { Clock, Entropy, KeyEnclave, SelfReport } from '../ports.ts'
import type { AnyWitness } from '../store/types.ts'
import { assertItemSigned, type CheckedItem } from './checkItem.ts'
import type { SignatureChecker } from './checkSignatures.ts'
import type { Committed, VerifiedSigning } from './commit.ts'
import type { Progress } from './gather.ts'
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
)

/** One signing that a signed-in user asked for. */
export type SigningRequest = {
  sid: string
  grant: string
  keyId: string
  walletId: string
  address: Hex
  asked: Asked
}

/** Signatures that are checked together: those of the first part are stored while those of the next are checked. */
const PART = 32

/** The opening is of what is signed off the chain. It is not kept. */
export type SigningResult = { signature: Hex; slug: string; opening?: Opening }
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
  const items = requests.map((request, index) => toSignItem(deps, request, witnesses[index]))
  const beganAt = deps.clock.now()
  const { batches, results, config, settings } = await deps.enclave.signItems(items) // 3
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
    const verified = deps.verifyBatch(batch, { config, settings }, at) // 4
    for (let start = 0; start < items.length; start += PART) {
      parts.push(settlePart(deps, verified, items.slice(start, start + PART), answer))
    }
  }
  await Promise.all(parts)
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
    const [batch, isGood] = await Promise.all([
      verified,
      deps.signatures.check(items.map(({ checked }) => checked.claim)),
    ])
    await Promise.all(
      items.map(async ({ request, checked, leafIndex, witness }, position) => {
        const { stated, claim, opening } = checked
        try {
          if (isGood[position] !== true) {
            throw new CoordinatorError('signature_invalid', 'the enclave’s signature is not of this wallet')
          }
          const { walletId } = request
          const { signature, slug } = await deps.commit({ batch, walletId, stated, leafIndex, witness }) // 5
          // A signature that is not stored goes from the enclave to the caller.
          const value = { signature: signature ?? claim.signature, slug, ...(opening && { opening }) }
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

function toSignItem(
  { receiptVersion }: Pick<SignDeps, 'receiptVersion'>,
  { sid, grant, keyId, asked }: SigningRequest,
  witness: AnyWitness | undefined,
): SignItem {
  if (witness === undefined) throw noSample()
  const granted = { sid, grant, keyId, witness }
  switch (asked.kind) {
    case 'transaction': {
      const { kind, digest, txMetadata } = asked
      return { kind, statementVersion: receiptVersion, ...granted, digest, txMetadata }
    }
    case 'authorization':
      return { kind: asked.kind, ...granted, authorization: asked.authorization }
    case 'message':
      return { kind: asked.kind, ...granted, content: asked.content }
    case 'typed-data':
      return { kind: asked.kind, ...granted, content: asked.content }
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
}

function toItemError({ error }: SignItemError): CoordinatorError {
  return new CoordinatorError(ITEM_ERRORS[error], 'the enclave refused to sign', { details: error })
}

function failed(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}
