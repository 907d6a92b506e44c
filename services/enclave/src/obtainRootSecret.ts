import { readFile } from 'node:fs/promises'
import { fromHex } from '@countersign/protocol'
import { type Backup, BackupError, nameBackup, parseBackup } from './backup/backup.ts'
import { assertNoBackup, type CreateBackupDeps, createBackup, writeBackup } from './backup/createBackup.ts'
import { type Recovery, type RecoveryDeps, startRecovery } from './backup/recovery.ts'
import { verifyBackup } from './backup/verifyBackup.ts'
import type { Custody } from './keys/custody.ts'
import type { AttestedSource } from './transfer/attestedSource.ts'
import { type JoinDeps, join } from './transfer/join.ts'
import type { ParsedRootSecretPolicy } from './transfer/rootSecretPolicy.ts'

export type ObtainDeps = Omit<JoinDeps, 'policy' | 'custody'> & Pick<RecoveryDeps, 'health'> & { custody: Custody }

/** An enclave that has to wait for custodians, and what is still to do when they have come. */
export type AwaitedSecret = Omit<Recovery, 'isForOthers'> & { finish(): Promise<void> }

/**
 * Brings the root secret into the vault, in the way that this start was told. By genesis and by joining it is there
 * afterwards; a recovery goes on while the enclave listens.
 */
export async function obtainRootSecret(deps: ObtainDeps, source: AttestedSource): Promise<AwaitedSecret | undefined> {
  const { from, policy } = source
  if (from.kind === 'join') {
    const { backupPath } = from
    const check = backupPath === undefined ? {} : { readCommitment: () => readCommitment(deps, policy, backupPath) }
    await join({ ...deps, ...check, policy: policy.policy }, from.urls)
    return undefined
  }
  if (from.kind === 'genesis') {
    await assertNoBackup(from.backupPath)
    await deps.custody.generate()
    await saveBackup({ ...deps, ...policy }, from.backupPath)
    return undefined
  }
  const backup = await readBackup(from.backupPath)
  const { newBackupPath } = from
  if (newBackupPath !== undefined) await assertNoBackup(newBackupPath)
  const { isForOthers, ...recovery } = await startRecovery({ ...deps, backup, policy })
  if (isForOthers && newBackupPath === undefined) {
    throw new BackupError('the policy has other custodians than the backup: set ROOT_SECRET_NEW_BACKUP_FILE')
  }
  deps.log.info('Verified the backup', { backup: nameBackup(backup), createdAt: backup.createdAt })
  return {
    ...recovery,
    async finish() {
      if (newBackupPath !== undefined) await saveBackup({ ...deps, ...policy }, newBackupPath)
    },
  }
}

/** Two enclaves that were both told to make a secret have two; a backup says which of them is meant. */
async function readCommitment({ verifier }: ObtainDeps, policy: ParsedRootSecretPolicy, path: string) {
  const backup = await readBackup(path)
  await verifyBackup({ verifier, madeUnder: backup.policyHash === policy.policyHash ? policy : undefined }, backup)
  return fromHex(backup.commitment)
}

async function readBackup(path: string): Promise<Backup> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new BackupError(`ROOT_SECRET_BACKUP_FILE cannot be read: ${error.code}`)
  })
  return parseBackup(text)
}

/** Before anything is served: an address that somebody has been given must never be one that only this process knows. */
async function saveBackup(deps: ObtainDeps & CreateBackupDeps, path: string) {
  const backup = await createBackup(deps)
  // By our own policy: an enclave that it does not list could give its secret to no other, and no custodian would take the backup.
  await verifyBackup({ verifier: deps.verifier, madeUnder: deps }, backup)
  await writeBackup(path, backup, deps.random)
  deps.log.info('Wrote the backup of the root secret', { backup: nameBackup(backup), path })
}
