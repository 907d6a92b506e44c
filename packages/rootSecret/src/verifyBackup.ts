import { PolicyError, QuoteError, type QuotePolicy, tcbStatuses, type Verifier } from '@countersign/attestation'
import {
  computeBackupReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  toRootSecretName,
} from '@countersign/protocol'
import { type Backup, BackupError, hashBackup } from './backup.ts'
import { verifyPeerEvidence } from './peerEvidence.ts'
import { type ParsedRootSecretPolicy, toQuotePolicy } from './policy.ts'

/**
 * Verifies that a genuine enclave made this backup, on the expected kind of silicon (simulated silicon must not get the shares
 * of a real backup in a drill), and that it is unchanged since. With the policy under which it was made, also that it was an
 * enclave of that policy, for that policy's custodians. An enclave that is recovered under another policy does not have it;
 * then the custodians check that, before they submit a share.
 */
export async function verifyBackup(
  { verifier, isMock, madeUnder }: VerifyBackupParameters,
  backup: Backup,
): Promise<void> {
  const { config } = backup.evidence
  const configHash = hashEnclaveConfig(config)
  if (!equalBytes(configHash, fromHex(backup.configHash))) throw wrong('its configuration is another')
  if (config.rootSecret !== toRootSecretName(backup.policyHash)) throw wrong('its configuration has another policy')
  if ((config.quoteSource === 'mock') !== isMock) {
    throw wrong(isMock ? 'it is of real silicon, and no drill' : 'it is of simulated silicon')
  }
  if (new Set(backup.shares.map(({ custodian }) => custodian)).size !== backup.shares.length) {
    throw wrong('a custodian stands in it twice')
  }
  if (madeUnder !== undefined) assertOfPolicy(backup, madeUnder)
  const policy: QuotePolicy = madeUnder === undefined ? { statuses: tcbStatuses } : toQuotePolicy(madeUnder.policy)
  const reportData = computeBackupReportData({ backupHash: hashBackup(backup), configHash })
  try {
    await verifyPeerEvidence(
      { verifier, policy, at: new Date(backup.createdAt) },
      { evidence: backup.evidence, reportData },
    )
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    const details = cause.details === undefined ? cause.code : `${cause.code}, ${cause.details}`
    throw wrong(`its quote does not hold (${details})`, cause)
  }
}

export type VerifyBackupParameters = {
  verifier: Verifier
  isMock: boolean
  madeUnder?: ParsedRootSecretPolicy | undefined
}

function assertOfPolicy(backup: Backup, { policy, policyHash }: ParsedRootSecretPolicy) {
  if (backup.policyHash !== policyHash) throw wrong('it was made under another policy')
  const { threshold, keys } = policy.custodians
  const custodians = backup.shares.map(({ custodian }) => custodian)
  if (backup.threshold !== threshold || custodians.join() !== keys.join()) throw wrong('it is for other custodians')
}

function wrong(text: string, cause?: unknown) {
  return new BackupError(`the backup is not accepted: ${text}`, cause === undefined ? {} : { cause })
}
