import { PolicyError, QuoteError, type QuotePolicy, tcbStatuses, type Verifier } from '@countersign/attestation'
import {
  computeBackupReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  toRootSecretName,
} from '@countersign/protocol'
import { verifyEvidence } from '../transfer/peerEvidence.ts'
import { type ParsedRootSecretPolicy, toQuotePolicy } from '../transfer/rootSecretPolicy.ts'
import { type Backup, BackupError, hashBackup } from './backup.ts'

/**
 * Whether a genuine enclave made this backup, of the kind of silicon that is asked for, and nobody has changed it since: who
 * knows how to simulate silicon must not get a real backup's shares in a drill. With the policy under which it was made, also
 * whether it was one of that policy's enclaves, for that policy's custodians. Without (an enclave that is recovered under
 * another policy does not have it) the custodians judge that: none gives a share of a backup that he has not checked.
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
    await verifyEvidence(
      { verifier, policy, at: new Date(backup.createdAt) },
      { evidence: backup.evidence, reportData },
    )
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    const details = cause.details === undefined ? cause.code : `${cause.code}, ${cause.details}`
    throw wrong(`its quote does not hold (${details})`, cause)
  }
}

type VerifyBackupParameters = {
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
