import { hash } from 'node:crypto'
import { PolicyError, QuoteError, type Verifier } from '@countersign/attestation'
import { VendorError } from '@countersign/evidence'
import {
  type ChallengeResponse,
  computeDonorReportData,
  computeJoinerReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  type TransferRequest,
  type TransferResponse,
  toHex,
} from '@countersign/protocol'
import { EnclaveError } from '../errors.ts'
import type { Custody } from '../keys/custody.ts'
import { isX25519Key } from '../keys/x25519.ts'
import type { Clock, Log, Random } from '../ports.ts'
import { createTurns } from '../turns.ts'
import { createChallenges } from './challenges.ts'
import { createEvidence, type EvidenceDeps, verifyEvidence } from './peerEvidence.ts'
import { type RootSecretPolicy, toQuotePolicy } from './rootSecretPolicy.ts'

export type DonorDeps = EvidenceDeps & {
  policy: RootSecretPolicy
  /** Under the roots of our own mode alone: simulated silicon gets nothing from real silicon, and the other way round. */
  verifier: Verifier
  custody: Pick<Custody, 'seal'>
  clock: Clock
  random: Random
  log: Log
}

export type Donor = {
  challenge(): ChallengeResponse
  transfer(request: TransferRequest): Promise<TransferResponse>
}

/** Joiners that may wait for the one before them. */
const MAX_WAITING = 4

/**
 * Gives the root secret to an enclave like ourselves: genuine, measured as the policy lists it, and configured as we are to the
 * letter. The secret leaves the vault sealed to a key that the joiner's quote covers; our own quote tells the joiner whose
 * secret it is. Nothing is sealed or quoted before the joiner's quote has been verified.
 */
export function createDonor(deps: DonorDeps): Donor {
  const configHash = hashEnclaveConfig(deps.config)
  const challenges = createChallenges(deps)
  const inTurn = createTurns(MAX_WAITING)

  function assertOpen(challenge: Uint8Array) {
    if (!challenges.isOpen(challenge)) throw new EnclaveError('challenge_unknown', 'the challenge is not open')
  }

  async function give(request: TransferRequest): Promise<TransferResponse> {
    const [challenge, nonce, publicKey] = [request.challenge, request.nonce, request.publicKey].map(fromHex) as Parts
    // Again, since another may have used it while this one waited.
    assertOpen(challenge)
    const reportData = computeJoinerReportData({ challenge, nonce, publicKey, configHash })
    const joiner = await verifyJoiner(deps, request, reportData)
    challenges.use(challenge)
    const { enc, ciphertext } = await deps.custody.seal({ recipient: publicKey, aad: reportData })
    const ciphertextHash = hash('sha256', ciphertext, 'buffer')
    const donorData = computeDonorReportData({ challenge, nonce, publicKey, enc, ciphertextHash, configHash })
    const evidence = await createEvidence(deps, donorData).catch((cause) => {
      if (!(cause instanceof VendorError)) throw cause
      throw new EnclaveError('collateral_stale', 'no collateral for this machine', { details: cause.code, cause })
    })
    deps.log.info('Gave the root secret to an enclave', {
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
      return inTurn(() => give(request))
    },
  }
}

type Parts = [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>]

async function verifyJoiner(deps: DonorDeps, { evidence }: TransferRequest, reportData: Uint8Array) {
  const { verifier, policy, clock } = deps
  try {
    return await verifyEvidence(
      { verifier, policy: toQuotePolicy(policy), at: new Date(clock.now()) },
      { evidence, reportData },
    )
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    // What a policy does not accept is of a genuine machine: the operator may want to know which.
    const isKnown = cause instanceof PolicyError && cause.details !== undefined
    throw refused(isKnown ? `${cause.code}: ${cause.details}` : cause.code, cause)
  }
}

function refused(details: string, cause?: unknown) {
  return new EnclaveError('transfer_refused', 'this enclave may not have the root secret', { details, cause })
}
