import { AUTHENTICATOR_DATA_BYTES, type AuthenticatorDataReason, equalBytes } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'

/** WebAuthn §6.1, the bits of the byte after the hash of the domain. */
const FLAGS = { UP: 0x01, UV: 0x04, BE: 0x08, BS: 0x10, AT: 0x40, ED: 0x80 } as const

/**
 * Why authenticator data are not valid for an approval: WebAuthn §7.2, steps 15 to 19. Ignores `signCount`, which is meaningless for synced
 * passkeys.
 */
export function checkAuthenticatorData(bytes: Uint8Array, rpId: string): AuthenticatorDataReason | undefined {
  if (bytes.length !== AUTHENTICATOR_DATA_BYTES) return 'authenticator_data_malformed'
  if (!equalBytes(bytes.subarray(0, 32), sha256(new TextEncoder().encode(rpId)))) return 'rp_id_mismatch'
  const flags = bytes[32] as number
  const has = (flag: number) => (flags & flag) !== 0
  if (!has(FLAGS.UP)) return 'user_not_present'
  if (!has(FLAGS.UV)) return 'user_not_verified'
  if (has(FLAGS.AT) || has(FLAGS.ED)) return 'authenticator_data_extended'
  return has(FLAGS.BS) && !has(FLAGS.BE) ? 'backup_state_impossible' : undefined
}
