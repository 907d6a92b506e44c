import { hash } from 'node:crypto'
import { PolicyError, QuoteError, type Verifier } from '@countersign/attestation'
import { EvidenceError, VendorError, type Wait } from '@countersign/evidence'
import {
  computeDonorReportData,
  computeJoinerReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  rootSecretPaths,
  type TransferRequest,
  toHex,
} from '@countersign/protocol'
import { type Custody, CustodyError } from '../keys/custody.ts'
import type { Clock, Log, Random } from '../ports.ts'
import { type CallPeer, PeerError } from './callPeer.ts'
import { parseChallengeResponse, parseTransferResponse } from './parseTransfer.ts'
import { createEvidence, type EvidenceDeps, verifyEvidence } from './peerEvidence.ts'
import { type RootSecretPolicy, toQuotePolicy } from './rootSecretPolicy.ts'

export type JoinDeps = EvidenceDeps & {
  policy: RootSecretPolicy
  /** Under the roots of our own mode alone. */
  verifier: Verifier
  custody: Pick<Custody, 'makeKey' | 'accept'>
  /** Of the backup's secret, where there is a backup: a donor of another genesis then has nothing for us. */
  readCommitment?(): Promise<Uint8Array>
  callPeer: CallPeer
  clock: Clock
  random: Random
  wait: Wait
  log: Log
}

/** Five minutes: an operator may start all enclaves at once, and the first has its own way to the secret before it. */
const ROUNDS = 60
const PAUSE_MS = 5_000

/**
 * Gets the root secret from the first of these enclaves that gives it. Those that are not up yet are asked again for a while;
 * where all say no there is nothing to wait for.
 */
export async function join(deps: JoinDeps, urls: readonly string[]): Promise<void> {
  for (let round = 1; round <= ROUNDS; round++) {
    let refusals = 0
    for (const donor of urls) {
      try {
        await joinOne(deps, donor)
        deps.log.info('Got the root secret from an enclave', { donor })
        return
      } catch (error) {
        const { reason, isFinal } = explain(error)
        if (isFinal) refusals += 1
        deps.log.warn('Got no root secret from an enclave', { donor, reason, round, rounds: ROUNDS })
      }
    }
    if (refusals === urls.length) throw new Error('no enclave gives us the root secret: see the reasons above')
    if (round < ROUNDS) await deps.wait(PAUSE_MS)
  }
  throw new Error('no enclave gave us the root secret in time')
}

async function joinOne(deps: JoinDeps, url: string): Promise<void> {
  const configHash = hashEnclaveConfig(deps.config)
  const { challenge } = parseChallengeResponse(await deps.callPeer(url, rootSecretPaths.challenge, {}))
  // Only now: a donor that has just made the secret has its backup on disk before it answers.
  const commitment = await deps.readCommitment?.()
  const publicKey = await deps.custody.makeKey()
  const nonce = deps.random(32)
  const asked = { challenge: fromHex(challenge), nonce, publicKey, configHash }
  const reportData = computeJoinerReportData(asked)
  const request: TransferRequest = {
    challenge,
    nonce: toHex(nonce),
    publicKey: toHex(publicKey),
    evidence: await createEvidence(deps, reportData),
  }
  const { enc, ciphertext, evidence } = parseTransferResponse(
    await deps.callPeer(url, rootSecretPaths.transfer, request),
  )
  // Before anything is opened: whoever answers could have sealed a secret of his own to our key.
  if (!equalBytes(hashEnclaveConfig(evidence.config), configHash)) {
    throw new PeerError('peer_not_accepted', 'the enclave is not accepted', { details: 'another configuration' })
  }
  const sealed = { enc: fromHex(enc), ciphertext: fromHex(ciphertext) }
  const ciphertextHash = hash('sha256', sealed.ciphertext, 'buffer')
  await verifyEvidence(
    { verifier: deps.verifier, policy: toQuotePolicy(deps.policy), at: new Date(deps.clock.now()) },
    { evidence, reportData: computeDonorReportData({ ...asked, enc: sealed.enc, ciphertextHash }) },
  )
  await deps.custody.accept({ sealed, aad: reportData, ...(commitment === undefined ? {} : { commitment }) })
}

/** Said no, or not to be believed: asking again changes nothing. Busy, or not there: it may. */
function explain(error: unknown): { reason: string; isFinal: boolean } {
  if (error instanceof PeerError) {
    const isBusy = error.code === 'peer_refused' && (error.status ?? 0) >= 500
    const reason = error.details === undefined ? error.message : `${error.message}: ${error.details}`
    return { reason, isFinal: error.code !== 'peer_unreachable' && !isBusy }
  }
  if (error instanceof QuoteError || error instanceof PolicyError) {
    return { reason: `the enclave is not accepted: ${error.code}`, isFinal: true }
  }
  if (error instanceof CustodyError) return { reason: error.refusal, isFinal: true }
  if (error instanceof EvidenceError || error instanceof VendorError) return { reason: error.code, isFinal: false }
  throw error
}
