import { readFile } from 'node:fs/promises'
import { EvidenceError, VendorError } from '@countersign/evidence'
import { fromHex } from '@countersign/protocol'
import { type Backup, BackupError, nameBackup, parseBackup } from './backup/backup.ts'
import { assertRoomForBackup, type CreateBackupDeps, createBackup, writeBackup } from './backup/createBackup.ts'
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
    const check = backupPath === undefined ? {} : { readBackup: () => recognise(deps, policy, backupPath) }
    await join({ ...deps, ...check, policy: policy.policy }, from.urls)
    return undefined
  }
  if (from.kind === 'genesis') {
    await assertRoomForBackup(from.backupPath, deps.random)
    await deps.custody.generate()
    await saveBackup({ ...deps, ...policy }, from.backupPath)
    return undefined
  }
  const backup = await readBackup(from.backupPath)
  const { newBackupPath } = from
  if (newBackupPath !== undefined) await assertRoomForBackup(newBackupPath, deps.random)
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
async function recognise({ verifier, config }: ObtainDeps, policy: ParsedRootSecretPolicy, path: string) {
  const backup = await readBackup(path)
  const isMock = config.quoteSource === 'mock'
  const madeUnder = backup.policyHash === policy.policyHash ? policy : undefined
  await verifyBackup({ verifier, isMock, madeUnder }, backup)
  return { commitment: fromHex(backup.commitment), isOurs: madeUnder !== undefined }
}

async function readBackup(path: string): Promise<Backup> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new BackupError(`ROOT_SECRET_BACKUP_FILE cannot be read: ${error.code}`)
  })
  return parseBackup(text)
}

/** Before anything is served: an address that somebody has been given must never be one that only this process knows. */
async function saveBackup(deps: ObtainDeps & CreateBackupDeps, path: string) {
  const backup = await createPatiently(deps)
  // By our own policy: an enclave that it does not list could give its secret to no other, and no custodian would take the backup.
  const isMock = deps.config.quoteSource === 'mock'
  await verifyBackup({ verifier: deps.verifier, isMock, madeUnder: deps }, backup)
  await writeBackup(path, backup, deps.random)
  deps.log.info('Wrote the backup of the root secret', { backup: nameBackup(backup), path })
}

const ATTEMPTS = 6
const PAUSE_MS = 10_000

/** The secret is here already, and custodians may have come for it: a service that is down for a moment must not cost that. */
async function createPatiently(deps: ObtainDeps & CreateBackupDeps): Promise<Backup> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await createBackup(deps)
    } catch (error) {
      const isPassing = error instanceof EvidenceError || error instanceof VendorError
      if (!isPassing || attempt === ATTEMPTS) throw error
      deps.log.warn('Could not make the backup yet', { reason: error.code, attempt, attempts: ATTEMPTS })
      await deps.wait(PAUSE_MS)
    }
  }
}
