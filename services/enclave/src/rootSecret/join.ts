import { hash } from 'node:crypto'
import { PolicyError, QuoteError, tcbStatuses, type Verifier } from '@countersign/attestation'
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
import { BackupError } from '../backup/backup.ts'
import { type Custody, CustodyError } from '../keys/custody.ts'
import type { Clock, Log, Random } from '../ports.ts'
import { CALL_TIMEOUT_MS, type CallPeer, PeerError } from './callPeer.ts'
import { parseChallengeResponse, parseTransferResponse } from './parseTransfer.ts'
import { createEvidence, type EvidenceDeps, verifyEvidence } from './peerEvidence.ts'
import { type RootSecretPolicy, toQuotePolicy } from './rootSecretPolicy.ts'

export type JoinDeps = EvidenceDeps & {
  policy: RootSecretPolicy
  /** Under the roots of our own mode alone. */
  verifier: Verifier
  custody: Pick<Custody, 'makeKey' | 'accept'>
  /**
   * The commitment to the backup's secret, where there is a backup: a donor of another genesis then has nothing for us. And
   * whether an enclave of our own policy made the backup.
   */
  readBackup?(): Promise<{ commitment: Uint8Array; isOurs: boolean }>
  callPeer: CallPeer
  clock: Clock
  random: Random
  wait: Wait
  log: Log
}

/** An operator may start all enclaves at once, and the first has its own way to the secret before it. */
const PATIENCE_MS = 300_000
const PAUSE_MS = 5_000
/** A challenge costs an enclave nothing: one that does not answer at once is not there. */
const CHALLENGE_TIMEOUT_MS = 5_000

/**
 * Gets the root secret from the first of these enclaves that gives it. Those that are not up yet are asked again for a while;
 * where all say no there is nothing to wait for.
 */
export async function join(deps: JoinDeps, urls: readonly string[]): Promise<void> {
  const deadline = deps.clock.now() + PATIENCE_MS
  const remainingMs = () => deadline - deps.clock.now()
  while (remainingMs() > 0) {
    let refusals = 0
    for (const donor of urls) {
      if (remainingMs() <= 0) break
      try {
        await joinOne(deps, { url: donor, remainingMs })
        deps.log.info('Got the root secret from an enclave', { donor })
        return
      } catch (error) {
        const { reason, isFinal } = explain(error)
        if (isFinal) refusals += 1
        deps.log.warn('Got no root secret from an enclave', { donor, reason, remainingMs: remainingMs() })
      }
    }
    if (refusals === urls.length) throw new Error('no enclave gives us the root secret: see the reasons above')
    await deps.wait(PAUSE_MS)
  }
  throw new Error('no enclave gave us the root secret in time')
}

type Attempt = { url: string; remainingMs(): number }

async function joinOne(deps: JoinDeps, { url, remainingMs }: Attempt): Promise<void> {
  const call = (path: string, body: unknown, timeoutMs: number) =>
    deps.callPeer(url, path, body, Math.max(1, Math.min(timeoutMs, remainingMs())))
  const configHash = hashEnclaveConfig(deps.config)
  const { challenge } = parseChallengeResponse(await call(rootSecretPaths.challenge, {}, CHALLENGE_TIMEOUT_MS))
  // Only now: a donor that has just made the secret has its backup on disk before it answers.
  const backup = await deps.readBackup?.()
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
    await call(rootSecretPaths.transfer, request, CALL_TIMEOUT_MS),
  )
  // Before anything is opened: whoever answers could have sealed a secret of his own to our key.
  if (!equalBytes(hashEnclaveConfig(evidence.config), configHash)) {
    throw new PeerError('peer_not_accepted', 'the enclave is not accepted', { details: 'another configuration' })
  }
  const sealed = { enc: fromHex(enc), ciphertext: fromHex(ciphertext) }
  const ciphertextHash = hash('sha256', sealed.ciphertext, 'buffer')
  // A secret that our own backup recognises is the right one, however old the machine's patches: when Intel raises the level all
  // machines are out of date at once, and one that was patched and restarted has nobody else to ask.
  const statuses = backup?.isOurs ? { statuses: tcbStatuses } : {}
  await verifyEvidence(
    { verifier: deps.verifier, policy: { ...toQuotePolicy(deps.policy), ...statuses }, at: new Date(deps.clock.now()) },
    { evidence, reportData: computeDonorReportData({ ...asked, enc: sealed.enc, ciphertextHash }) },
  )
  const check = backup === undefined ? {} : { commitment: backup.commitment }
  await deps.custody.accept({ sealed, aad: reportData, ...check })
}

/**
 * Said no, or not to be believed: asking again changes nothing. Busy, not there, or too slow with its own challenge: it may.
 * What one enclave answers must not keep us from asking the next; a backup that is wrong is wrong for all.
 */
function explain(error: unknown): { reason: string; isFinal: boolean } {
  if (error instanceof PeerError) {
    const isBusy =
      error.code === 'peer_refused' && ((error.status ?? 0) >= 500 || error.details === 'challenge_unknown')
    const reason = error.details === undefined ? error.message : `${error.message}: ${error.details}`
    return { reason, isFinal: error.code !== 'peer_unreachable' && !isBusy }
  }
  if (error instanceof QuoteError || error instanceof PolicyError) {
    return { reason: `the enclave is not accepted: ${error.code}`, isFinal: true }
  }
  if (error instanceof CustodyError) return { reason: error.refusal, isFinal: true }
  if (error instanceof EvidenceError || error instanceof VendorError) return { reason: error.code, isFinal: false }
  if (error instanceof BackupError) throw error
  return { reason: `unexpected ${error instanceof Error ? error.name : typeof error}`, isFinal: true }
}
