import { type ChallengeResponse, isHex, type TransferRequest, type TransferResponse } from '@countersign/protocol/core'
import { parseAnswer, parsePeerEvidence } from '@countersign/root-secret'
import { invalidRequest, toMembers } from '../parseRequest.ts'

/** A secret of 32 bytes and a tag of 16. */
const SEALED_SECRET_BYTES = 48

export function parseTransferRequest(value: unknown): TransferRequest {
  const { challenge, nonce, publicKey, evidence } = toMembers(value, ['challenge', 'nonce', 'publicKey', 'evidence'])
  if (!isHex(challenge, 32) || !isHex(nonce, 32) || !isHex(publicKey, 32)) throw invalidRequest('not 32 bytes of hex')
  try {
    return { challenge, nonce, publicKey, evidence: parsePeerEvidence(evidence) }
  } catch (cause) {
    throw invalidRequest('evidence', cause)
  }
}

export function parseChallengeResponse(value: unknown): ChallengeResponse {
  return parseAnswer(() => {
    const { challenge } = toMembers(value, ['challenge'])
    if (!isHex(challenge, 32)) throw invalidRequest('challenge')
    return { challenge }
  })
}

export function parseTransferResponse(value: unknown): TransferResponse {
  return parseAnswer(() => {
    const { enc, ciphertext, evidence } = toMembers(value, ['enc', 'ciphertext', 'evidence'])
    if (!isHex(enc, 32) || !isHex(ciphertext, SEALED_SECRET_BYTES)) throw invalidRequest('sealed')
    return { enc, ciphertext, evidence: parsePeerEvidence(evidence) }
  })
}
