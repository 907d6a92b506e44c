import { hash } from 'node:crypto'
import { PolicyError, QuoteError, type Verifier } from '@countersign/attestation/core'
import {
  computeDonorReportData,
  computeJoinerReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  toHex,
} from '@countersign/protocol/core'
import {
  type ChallengeResponse,
  type RootSecretPolicy,
  type TransferRequest,
  type TransferResponse,
  toQuotePolicy,
  verifyPeerEvidence,
} from '@countersign/root-secret'
import { isX25519Key } from '@countersign/root-secret/sealing'
import type { Log } from '@countersign/service'
import { createCallQueue } from '../callQueue.ts'
import { EnclaveError } from '../errors.ts'
import type { Clock, Random } from '../ports.ts'
import { createChallenges } from './challenges.ts'
import { createEvidenceForCaller, type EvidenceDeps } from './createEvidence.ts'
import type { RootSecretHolder } from './rootSecretHolder.ts'

export type DonorDeps = EvidenceDeps & {
  policy: RootSecretPolicy
  /** Has only the roots of our own mode, so simulated and real hardware never share a secret. */
  verifier: Verifier
  holder: Pick<RootSecretHolder, 'seal'>
  clock: Clock
  random: Random
  log: Log
}

export type Donor = {
  challenge(): ChallengeResponse
  transfer(request: TransferRequest): Promise<TransferResponse>
}

/** The most joiners that may wait. */
const MAX_WAITING = 4

/**
 * Gives the root secret to an equal enclave: genuine, with a measurement of the policy, and with exactly our configuration. The secret leaves
 * the key worker sealed to a key that the joiner's quote covers. Our own quote shows the joiner whose secret it gets. Nothing is sealed or
 * quoted before the joiner's quote is verified.
 */
export function createDonor(deps: DonorDeps): Donor {
  const configHash = hashEnclaveConfig(deps.config)
  const challenges = createChallenges(deps)
  const enqueue = createCallQueue(MAX_WAITING)

  function assertOpen(challenge: Uint8Array) {
    if (!challenges.isOpen(challenge)) throw new EnclaveError('challenge_unknown', 'the challenge is not open')
  }

  async function sendSecret(request: TransferRequest): Promise<TransferResponse> {
    const [challenge, nonce, publicKey] = [request.challenge, request.nonce, request.publicKey].map(fromHex) as Parts
    // Check again: another call may have used it meanwhile.
    assertOpen(challenge)
    const reportData = computeJoinerReportData({ challenge, nonce, publicKey, configHash })
    const joiner = await verifyJoiner(deps, request, reportData)
    challenges.use(challenge)
    const { enc, ciphertext } = await deps.holder.seal({ recipient: publicKey, aad: reportData })
    const ciphertextHash = hash('sha256', ciphertext, 'buffer')
    const donorData = computeDonorReportData({ challenge, nonce, publicKey, enc, ciphertextHash, configHash })
    const evidence = await createEvidenceForCaller(deps, donorData)
    deps.log.info({
      msg: 'Gave the root secret to an enclave',
      measurement: toHex(joiner.body.mrTd),
      platform: joiner.platform.fmspc,
    })
    return { enc: toHex(enc), ciphertext: toHex(ciphertext), evidence }
  }

  return {
    challenge: () => ({ challenge: toHex(challenges.issue()) }),
    async transfer(request) {
      assertOpen(fromHex(request.challenge))
      if (!equalBytes(hashEnclaveConfig(request.evidence.config), configHash)) throw refused('another configuration')
      if (!isX25519Key(fromHex(request.publicKey))) throw refused('not a key')
      return enqueue(() => sendSecret(request))
    },
  }
}

type Parts = [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>]

async function verifyJoiner(deps: DonorDeps, { evidence }: TransferRequest, reportData: Uint8Array) {
  const { verifier, policy, clock } = deps
  try {
    return await verifyPeerEvidence(
      { verifier, policy: toQuotePolicy(policy), at: new Date(clock.now()) },
      { evidence, reportData },
    )
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    // A genuine machine that the policy rejects. The operator may want to know which.
    const isKnown = cause instanceof PolicyError && cause.details !== undefined
    throw refused(isKnown ? `${cause.code}: ${cause.details}` : cause.code, cause)
  }
}

function refused(details: string, cause?: unknown) {
  return new EnclaveError('transfer_refused', 'this enclave may not have the root secret', { details, cause })
}
