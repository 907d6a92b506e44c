import { hash } from 'node:crypto'
import {
  type EnclaveConfig,
  type Hex,
  type SignedBatch,
  type SignItem,
  type SignItemError,
  type Statement,
  type TxMetadata,
  toStatementText,
} from '@countersign/protocol'
import { hashPart, toReceiptRelease, type Witness } from '@countersign/receipt'
import { CoordinatorError, type CoordinatorErrorCode } from '../errors.ts'
import type { Clock, CollateralStore, Entropy, KeyEnclave, Random, SelfReport } from '../ports.ts'
import type { Signed, SigningBatch, Store } from '../store/types.ts'
import { assertItemSigned, type CheckBatchDeps, checkBatch } from './checkBatch.ts'
import type { SignatureChecker } from './checkSignatures.ts'

export type SignDeps = Pick<CheckBatchDeps, 'verifier' | 'policy'> & {
  store: Pick<Store, 'findSigned' | 'insertSignings'>
  entropy: Pick<Entropy, 'take'>
  enclave: Pick<KeyEnclave, 'signTransactions'>
  collateral: Pick<CollateralStore, 'current'>
  selfReport: Pick<SelfReport, 'current' | 'sign' | 'publicKey' | 'mode'>
  signatures: SignatureChecker
  /** The platform that a quote names, so that its collateral can be had. */
  platformOf(quote: Uint8Array): { fmspc: string; ca: 'platform' | 'processor' }
  clock: Clock
  random: Random
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

export type SignDigestResult = { signature: Hex; slug: string }
type Settled = PromiseSettledResult<SignDigestResult>

/** `POST /sign/digest`, for the requests gathered into one batch. The numbers are the steps of the specification. */
export async function signDigests(
  deps: SignDeps,
  requests: readonly SignDigestRequest[],
  onSent: () => void,
): Promise<Settled[]> {
  const answers = new Map<SignDigestRequest, Settled>()
  const earlier = await deps.store.findSigned(requests.map(({ walletId, digest }) => ({ walletId, digest }))) // 1
  answerFrom(earlier, requests, answers)
  const fresh = requests.filter((request) => !answers.has(request))
  if (fresh.length > 0) await signFresh(deps, fresh, { onSent, answers })
  return requests.map((request) => answers.get(request) ?? failed(new CoordinatorError('internal', 'internal error')))
}

async function signFresh(
  deps: SignDeps,
  requests: readonly SignDigestRequest[],
  { onSent, answers }: { onSent: () => void; answers: Map<SignDigestRequest, Settled> },
) {
  const witnesses = await deps.entropy.take(requests.length) // 2
  const items = requests.map((request, index) => toSignItem(request, witnesses[index]))
  const { batches, results, config } = await deps.enclave.signTransactions(items) // 3
  onSent()

  const collected = batches.map((): Collected[] => [])
  for (const [index, request] of requests.entries()) {
    const result = results[index]
    const item = items[index]
    const witness = witnesses[index]
    if (result === undefined || item === undefined || witness === undefined) continue
    if ('error' in result) {
      answers.set(request, failed(toItemError(result)))
      continue
    }
    try {
      const batch = batches[result.batch]
      if (batch === undefined) throw new CoordinatorError('attestation_invalid', 'the enclave’s answer does not hold')
      const expected = { item, address: request.address, coordinatorKey: deps.selfReport.publicKey }
      const statement = assertItemSigned(expected, result, batch)
      collected[result.batch]?.push({ request, statement, leafIndex: result.leafIndex, path: result.path, witness })
    } catch (error) {
      answers.set(request, failed(error))
    }
  }

  await Promise.all(
    batches.map((batch, index) => settleBatch(deps, { batch, config }, collected[index] ?? [], answers)),
  )
}

/** Steps 4 to 6 for what one quote covers. */
async function settleBatch(
  deps: SignDeps,
  { batch, config }: { batch: SignedBatch; config: EnclaveConfig },
  items: readonly Collected[],
  answers: Map<SignDigestRequest, Settled>,
) {
  try {
    const quote = Buffer.from(batch.quote, 'hex')
    const collateral = await deps.collateral.current(deps.platformOf(quote))
    const [verdict, isGood] = await Promise.all([
      checkBatch({ ...deps, now: deps.clock.now() }, { batch, config, collateral: collateral.bytes }), // 4
      deps.signatures.check(items.map(({ statement, request }) => ({ ...statement, txMetadata: request.txMetadata }))),
    ])
    const good = items.filter(({ request }, position) => {
      if (isGood[position] === true) return true
      const error = new CoordinatorError('signature_invalid', 'the enclave’s signature is not of this wallet')
      answers.set(request, failed(error))
      return false
    })
    const signed = await commit(deps, { ...batch, ...verdict, config, quote, collateral }, good) // 5
    const requests = good.map(({ request }) => request)
    answerFrom(signed, requests, answers) // 6
  } catch (error) {
    for (const { request } of items) if (!answers.has(request)) answers.set(request, failed(error))
  }
}

type Collected = {
  request: SignDigestRequest
  statement: Statement
  leafIndex: number
  path: readonly string[]
  witness: Witness
}

type VerifiedBatch = Pick<
  SigningBatch,
  'bootId' | 'sequence' | 'previous' | 'treeSize' | 'quote' | 'config' | 'mode' | 'tcbStatus' | 'measurement'
> & {
  eventLog?: string
  collateral: { bytes: Uint8Array; hash: string }
}

/** Releases and stores what has been verified, in one transaction. */
function commit(deps: SignDeps, batch: VerifiedBatch, collected: readonly Collected[]): Promise<Signed[]> {
  if (collected.length === 0) return Promise.resolve([])
  const { selfAttestation } = deps.selfReport.current()
  const collateralHash = Buffer.from(batch.collateral.hash, 'hex')
  const selfAttestationHash = hashPart(selfAttestation)
  const signings = collected.map(({ request, statement, leafIndex, path, witness }) => {
    const leaf = new Uint8Array(hash('sha256', `\0${toStatementText(statement)}`, 'buffer'))
    const release = deps.selfReport.sign(toReceiptRelease({ leaf, collateralHash, selfAttestationHash, witness }))
    return {
      slug: Buffer.from(deps.random(16)).toString('base64url'),
      walletId: request.walletId,
      txMetadata: request.txMetadata,
      statement,
      leafIndex,
      path,
      witness,
      release: Buffer.from(release).toString('hex'),
    }
  })
  const { eventLog, collateral, ...rest } = batch
  return deps.store.insertSignings({
    batch: {
      ...rest,
      eventLog,
      collateral: collateral.bytes,
      selfAttestation,
      coordinatorMode: deps.selfReport.mode,
    },
    signings,
    now: deps.clock.now(),
  })
}

function toSignItem(request: SignDigestRequest, witness: Witness | undefined): SignItem {
  if (witness === undefined) throw new CoordinatorError('entropy_unavailable', 'no entropy sample could be had')
  const { sid, grant, keyId, digest, txMetadata } = request
  return {
    sid,
    grant,
    keyId,
    digest,
    txMetadata,
    entropyHash: hash('sha256', Buffer.from(witness.valueHex, 'hex'), 'hex'),
  }
}

function answerFrom(
  signed: readonly Signed[],
  requests: readonly SignDigestRequest[],
  answers: Map<SignDigestRequest, Settled>,
) {
  const byKey = new Map(signed.map((row) => [`${row.walletId} ${row.digest}`, row]))
  for (const request of requests) {
    const row = byKey.get(`${request.walletId} ${request.digest}`)
    if (row === undefined) continue
    answers.set(request, { status: 'fulfilled', value: { signature: row.signature, slug: row.slug } })
  }
}

const ITEM_ERRORS: Record<SignItemError['error'], CoordinatorErrorCode> = {
  invalid_request: 'internal',
  invalid_tx_metadata: 'invalid_tx_metadata',
  digest_mismatch: 'digest_mismatch',
  grant_invalid: 'grant_invalid',
  session_expired: 'session_expired',
  key_binding_mismatch: 'key_binding_mismatch',
  quote_unavailable: 'enclave_unavailable',
}

function toItemError({ error }: SignItemError): CoordinatorError {
  return new CoordinatorError(ITEM_ERRORS[error], 'the enclave refused to sign', { details: error })
}

function failed(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}
