import { type ChallengeResponse, isHex, type TransferRequest, type TransferResponse } from '@countersign/protocol'
import { EnclaveError } from '../errors.ts'
import { toMembers } from '../parseRequest.ts'
import { PeerError } from './callPeer.ts'
import { parsePeerEvidence } from './peerEvidence.ts'

/** A secret of 32 bytes and a tag of 16. */
const SEALED_SECRET_BYTES = 48

export function parseTransferRequest(value: unknown): TransferRequest {
  const { challenge, nonce, publicKey, evidence } = toMembers(value, ['challenge', 'nonce', 'publicKey', 'evidence'])
  if (!isHex(challenge, 32) || !isHex(nonce, 32) || !isHex(publicKey, 32)) throw invalid('not 32 bytes of hex')
  try {
    return { challenge, nonce, publicKey, evidence: parsePeerEvidence(evidence) }
  } catch (cause) {
    throw invalid('evidence', cause)
  }
}

export function parseChallengeResponse(value: unknown): ChallengeResponse {
  return asAnswer(() => {
    const { challenge } = toMembers(value, ['challenge'])
    if (!isHex(challenge, 32)) throw invalid('challenge')
    return { challenge }
  })
}

export function parseTransferResponse(value: unknown): TransferResponse {
  return asAnswer(() => {
    const { enc, ciphertext, evidence } = toMembers(value, ['enc', 'ciphertext', 'evidence'])
    if (!isHex(enc, 32) || !isHex(ciphertext, SEALED_SECRET_BYTES)) throw invalid('sealed')
    return { enc, ciphertext, evidence: parsePeerEvidence(evidence) }
  })
}

/** What is wrong with an answer is its sender's fault, not the caller's. */
export function asAnswer<Answer>(parse: () => Answer): Answer {
  try {
    return parse()
  } catch (cause) {
    throw new PeerError('peer_not_accepted', 'not the answer of an enclave', { cause })
  }
}

function invalid(details: string, cause?: unknown) {
  return new EnclaveError('invalid_request', 'invalid request', { details, cause })
}
