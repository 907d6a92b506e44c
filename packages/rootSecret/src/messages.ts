import { assertCollateral, type Collateral } from '@countersign/attestation/core'
import {
  assertSettingsOf,
  type EnclaveConfig,
  type EnclaveSettings,
  hashEnclaveConfig,
} from '@countersign/protocol/core'
import { checked, hex, hexUpTo, type Infer, leaf, natural, object } from '@countersign/protocol/schema'

/* Messages between enclaves and custodians, at the `rootSecretPaths` of the protocol. */

/** Real quotes are 5 to 8 KiB. */
const MAX_QUOTE_BYTES = 65_536
/** A secret of 32 bytes and a tag of 16. */
const SEALED_SECRET_BYTES = 48
/** A share of 33 bytes (the secret's 32 and an index), and a tag of 16. */
export const SEALED_SHARE_BYTES = 49

/** Evidence that an enclave sends to its peer: a quote, its configuration, and Intel's collateral to verify the quote with. */
export const peerEvidence = object({
  quote: hexUpTo(MAX_QUOTE_BYTES),
  // Text that isn't well-formed Unicode can't be hashed. Parsing should fail here, not later.
  config: leaf<EnclaveConfig>((value) => hashEnclaveConfig(value as EnclaveConfig)),
  collateral: leaf<Collateral>((value) => {
    assertCollateral(value)
    return true
  }),
})
export type PeerEvidence = Infer<typeof peerEvidence>

/** `areSettingsOf` checks these against the hash in the configuration. */
export const unreadSettings = leaf<EnclaveSettings>((value) => value !== undefined)

export function areSettingsOf({ evidence, settings }: { evidence: PeerEvidence; settings: EnclaveSettings }): true {
  assertSettingsOf(evidence.config, settings)
  return true
}

/** Bytes that only the holder of a key can open (RFC 9180): the encapsulated key, and the ciphertext. */
const toSealed = (bytes: number) => ({ enc: hex(32), ciphertext: hex(bytes) })

/** 32 bytes, fresh, for one transfer. */
export const challengeResponse = object({ challenge: hex(32) })
export type ChallengeResponse = Infer<typeof challengeResponse>

/** The quote is over `computeJoinerReportData`. */
export const transferRequest = object({
  challenge: hex(32),
  nonce: hex(32),
  publicKey: hex(32),
  evidence: peerEvidence,
})
export type TransferRequest = Infer<typeof transferRequest>

/** The quote is over `computeDonorReportData`. */
export const transferResponse = object({ ...toSealed(SEALED_SECRET_BYTES), evidence: peerEvidence })
export type TransferResponse = Infer<typeof transferResponse>

export const recoveryRequest = object({ nonce: hex(32) })
export type RecoveryRequest = Infer<typeof recoveryRequest>

/** The quote is over `computeRecoveryReportData`. The settings match the hash in the configuration. */
export const recoveryResponse = checked(
  object({ publicKey: hex(32), backupHash: hex(32), evidence: peerEvidence, settings: unreadSettings }),
  areSettingsOf,
)
export type RecoveryResponse = Infer<typeof recoveryResponse>

/** The share of the custodian with this index in the backup, sealed to the enclave's key with the custodian's key. */
export const shareRequest = object({ ...toSealed(SEALED_SHARE_BYTES), index: natural })
export type ShareRequest = Infer<typeof shareRequest>

/** How many shares the enclave has, and how many it needs. */
export const shareResponse = object({ held: natural, needed: natural })
export type ShareResponse = Infer<typeof shareResponse>
