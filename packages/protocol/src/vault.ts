import { sha256 } from '@noble/hashes/sha2.js'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { type ApprovalKind, kinds } from './kinds.ts'
import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * HKDF info of a vault's private key. `owner` is SHA-256(iss ‖ 0x00 ‖ sub), as for the wallet of the same user; `policyHash` is SHA-256 of
 * the
 * policy's canonical JSON. 48 bytes of HKDF-SHA-256 (no salt) become a key, as for wallets. Different rules give a different key, so there is
 * no stored record of the rules that could be changed or rolled back.
 */
export function toVaultKeyInfo(fields: Preimage<'vault'>): Bytes {
  return toPreimage(preimages.vault, fields)
}

/** HKDF info of a vault's key ID, which is the first 16 bytes. */
export function toVaultKeyIdInfo(fields: Preimage<'vaultKeyId'>): Bytes {
  return toPreimage(preimages.vaultKeyId, fields)
}

/**
 * The WebAuthn challenge of an approval. Passkeys sign nothing else of ours. The address distinguishes two vaults with the same policy.
 * `expiresMs` is when the approval expires, in milliseconds since 1970.
 */
export function computeApprovalChallenge(approved: ApprovedRequest): Bytes {
  return sha256(toPreimage(preimages.approval, toFields(approved)))
}

/** The bytes that a program's key signs to approve the same. */
export function toAgentApprovalBytes(approved: ApprovedRequest): Bytes {
  return toPreimage(preimages.agentApproval, toFields(approved))
}

/** What an approval is for. `rule` is the index of the rule that is to allow it. */
export type ApprovedRequest = Omit<Preimage<'approval'>, 'kind'> & { kind: ApprovalKind }

function toFields({ kind, ...fields }: ApprovedRequest): Preimage<'approval'> {
  const row = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!row?.isApprovable) throw new ServiceError<ProtocolErrorCode>('invalid_request', 'unknown kind of signature')
  return { ...fields, kind: row.number }
}
