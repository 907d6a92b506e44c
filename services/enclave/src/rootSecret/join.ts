import { hash } from 'node:crypto'
import { PolicyError, QuoteError, tcbStatuses, type Verifier } from '@countersign/attestation/core'
import { EvidenceError, VendorError, type Wait } from '@countersign/evidence/core'
import {
  computeDonorReportData,
  computeJoinerReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  rootSecretPaths,
  toHex,
} from '@countersign/protocol/core'
import {
  BackupError,
  CALL_TIMEOUT_MS,
  type CallPeer,
  challengeResponse,
  PeerError,
  parseAnswer,
  type RootSecretPolicy,
  type TransferRequest,
  toQuotePolicy,
  transferResponse,
  verifyPeerEvidence,
} from '@countersign/root-secret'
import type { Log } from '@countersign/service'
import type { Clock, Random } from '../ports.ts'
import { createEvidence, type EvidenceDeps } from './createEvidence.ts'
import { RootSecretError, type RootSecretHolder } from './rootSecretHolder.ts'

export type JoinDeps = EvidenceDeps & {
  policy: RootSecretPolicy
  /** With the roots of our own mode only. */
  verifier: Verifier
  holder: Pick<RootSecretHolder, 'createKey' | 'accept'>
  /**
   * With a backup: the commitment to its secret, to reject the secret of another genesis, and whether an enclave of our own policy made the
   * backup.
   */
  readBackup?(): Promise<{ commitment: Uint8Array; isOurs: boolean }>
  callPeer: CallPeer
  clock: Clock
  random: Random
  wait: Wait
  log: Log
}

/** An operator may start all enclaves at once, and the first one needs time to get the secret. */
const TIME_LIMIT_MS = 300_000
const PAUSE_MS = 5_000
/** A challenge takes an enclave no time, so one that doesn't answer quickly isn't running. */
const CHALLENGE_TIMEOUT_MS = 5_000

/**
 * Gets the root secret from the first enclave that gives it. Retries those that are not up yet for five minutes. Fails at once when all have
 * refused.
 */
export async function join(deps: JoinDeps, urls: readonly string[]): Promise<void> {
  const deadline = deps.clock.now() + TIME_LIMIT_MS
  const remainingMs = () => deadline - deps.clock.now()
  while (remainingMs() > 0) {
    let refusals = 0
    for (const donor of urls) {
      if (remainingMs() <= 0) break
      try {
        await joinOne(deps, { url: donor, remainingMs })
        deps.log.info({ msg: 'Got the root secret from an enclave', donor })
        return
      } catch (error) {
        const { reason, isFinal } = explain(error)
        if (isFinal) refusals += 1
        deps.log.warn({ msg: 'Got no root secret from an enclave', donor, reason, remainingMs: remainingMs() })
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
  const { challenge } = parseAnswer(challengeResponse, await call(rootSecretPaths.challenge, {}, CHALLENGE_TIMEOUT_MS))
  // Read it now: a donor that has just created the secret writes its backup before it answers.
  const backup = await deps.readBackup?.()
  const publicKey = await deps.holder.createKey()
  const nonce = deps.random(32)
  const asked = { challenge: fromHex(challenge), nonce, publicKey, configHash }
  const reportData = computeJoinerReportData(asked)
  const request: TransferRequest = {
    challenge,
    nonce: toHex(nonce),
    publicKey: toHex(publicKey),
    evidence: await createEvidence(deps, reportData),
  }
  const { enc, ciphertext, evidence } = parseAnswer(
    transferResponse,
    await call(rootSecretPaths.transfer, request, CALL_TIMEOUT_MS),
  )
  // Check before opening: an attacker could have sealed their own secret to our key.
  if (!equalBytes(hashEnclaveConfig(evidence.config), configHash)) {
    throw new PeerError('peer_not_accepted', 'the enclave is not accepted', { details: 'another configuration' })
  }
  const sealed = { enc: fromHex(enc), ciphertext: fromHex(ciphertext) }
  const ciphertextHash = hash('sha256', sealed.ciphertext, 'buffer')
  // A secret that matches our own backup is right, even if the donor is behind on patches. When Intel raises the required level, all machines
  // are outdated at once, and one that was patched and restarted has no other donor.
  const statuses = backup?.isOurs ? { statuses: tcbStatuses } : {}
  await verifyPeerEvidence(
    { verifier: deps.verifier, policy: { ...toQuotePolicy(deps.policy), ...statuses }, at: new Date(deps.clock.now()) },
    { evidence, reportData: computeDonorReportData({ ...asked, enc: sealed.enc, ciphertextHash }) },
  )
  const check = backup === undefined ? {} : { commitment: backup.commitment }
  await deps.holder.accept({ sealed, aad: reportData, ...check })
}

/**
 * A refusal or an untrusted answer is final: asking again changes nothing. An enclave that is busy, down or slow may answer later. One
 * enclave's answer must not stop us from asking the next. A wrong backup is wrong for all.
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
  if (error instanceof RootSecretError) return { reason: error.refusal, isFinal: true }
  if (error instanceof EvidenceError || error instanceof VendorError) return { reason: error.code, isFinal: false }
  if (error instanceof BackupError) throw error
  return { reason: `unexpected ${error instanceof Error ? error.name : typeof error}`, isFinal: true }
}
