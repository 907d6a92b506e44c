import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes } from './bytes.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { toField, toU64be } from './fields.ts'
import { type Tag, tags, toTagBytes } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** Whose vault, and under which rules: both are 32 bytes. */
export type VaultParameters = {
  /** SHA-256(iss ‖ 0x00 ‖ sub), as for the wallet of the same user. */
  owner: Uint8Array
  /** SHA-256 of the policy's canonical JSON. */
  policyHash: Uint8Array
}

/**
 * HKDF info of a vault's private key. 48 bytes of HKDF-SHA-256 (no salt) become a key as those of a wallet do. Other rules are
 * another key, so that there is no record of the rules that could be changed or rolled back.
 */
export function toVaultKeyInfo(vault: VaultParameters): Bytes {
  return toInfo(tags.vault, vault)
}

/** HKDF info of a vault's key id, of which 16 bytes are taken. */
export function toVaultKeyIdInfo(vault: VaultParameters): Bytes {
  return toInfo(tags.vaultKeyId, vault)
}

function toInfo(tag: Tag, { owner, policyHash }: VaultParameters): Bytes {
  return concatBytes(toTagBytes(tag), toField('owner', owner, 32), toField('policyHash', policyHash, 32))
}

const KINDS = { transaction: 1, message: 2, 'typed-data': 3 } as const

/** What a passkey can approve. There is no authorization among them: the code that it lets in would need no approval. */
export type ApprovalKind = keyof typeof KINDS

export type ApprovalChallengeParameters = {
  /** 20 bytes. Two vaults of one policy have different ones. */
  vaultAddress: Uint8Array
  /** 32 bytes. */
  policyHash: Uint8Array
  kind: ApprovalKind
  /** 32 bytes: what the vault is to sign. */
  digest: Uint8Array
  /** When the approval ends, in milliseconds since 1970. */
  expiresMs: number
}

/** The WebAuthn challenge of an approval: what a passkey signs covers nothing else of ours. */
export function computeApprovalChallenge(parameters: ApprovalChallengeParameters): Bytes {
  const { vaultAddress, policyHash, kind, digest, expiresMs } = parameters
  if (!Object.hasOwn(KINDS, kind)) {
    throw new ServiceError<ProtocolErrorCode>('invalid_request', 'unknown kind of signature')
  }
  return sha256(
    concatBytes(
      toTagBytes(tags.approval),
      toField('vaultAddress', vaultAddress, 20),
      toField('policyHash', policyHash, 32),
      Uint8Array.of(KINDS[kind]),
      toField('digest', digest, 32),
      toU64be(expiresMs),
    ),
  )
}
