import { readFile } from 'node:fs/promises'
import { QuoteError } from '@countersign/attestation/core'
import { EvidenceError, VendorError } from '@countersign/evidence/core'
import { fromHex } from '@countersign/protocol/core'
import {
  type Backup,
  BackupError,
  nameBackup,
  type ParsedRootSecretPolicy,
  parseBackup,
  verifyBackup,
} from '@countersign/root-secret'
import type { AttestedSource } from './attestedSource.ts'
import { assertRoomForBackup, type CreateBackupDeps, createBackup, writeBackup } from './createBackup.ts'
import { type JoinDeps, join } from './join.ts'
import { type Recovery, type RecoveryDeps, startRecovery } from './recovery.ts'
import type { RootSecretHolder } from './rootSecretHolder.ts'

export type ObtainDeps = Omit<JoinDeps, 'policy' | 'holder'> &
  Pick<RecoveryDeps, 'health' | 'settings'> & { holder: RootSecretHolder }

/** An enclave that waits for custodians, and the work that remains after they have submitted. */
export type PendingRecovery = Omit<Recovery, 'needsNewBackup'> & { finish(): Promise<void> }

/**
 * Brings the root secret into the key worker, as configured for this start. After genesis or joining it is there at once; a recovery
 * continues while the enclave listens.
 */
export async function obtainRootSecret(deps: ObtainDeps, source: AttestedSource): Promise<PendingRecovery | undefined> {
  const { from, policy } = source
  if (from.kind === 'join') {
    const { backupPath } = from
    const check = backupPath === undefined ? {} : { readBackup: () => readCommitment(deps, policy, backupPath) }
    await join({ ...deps, ...check, policy: policy.policy }, from.urls)
    return undefined
  }
  if (from.kind === 'genesis') {
    await assertRoomForBackup(from.backupPath, deps.random)
    await deps.holder.generate()
    await saveBackup({ ...deps, ...policy }, from.backupPath)
    return undefined
  }
  const backup = await readBackup(from.backupPath)
  const { newBackupPath } = from
  if (newBackupPath !== undefined) await assertRoomForBackup(newBackupPath, deps.random)
  const { needsNewBackup, ...recovery } = await startRecovery({ ...deps, backup, policy })
  if (needsNewBackup && newBackupPath === undefined) {
    throw new BackupError('the policy has other custodians than the backup: set ROOT_SECRET_NEW_BACKUP_FILE')
  }
  deps.log.info({ msg: 'Verified the backup', backup: nameBackup(backup), createdAt: backup.createdAt })
  return {
    ...recovery,
    async finish() {
      if (newBackupPath !== undefined) await saveBackup({ ...deps, ...policy }, newBackupPath)
    },
  }
}

/** Two enclaves that both started with genesis have two secrets. The backup decides which one counts. */
async function readCommitment({ verifier, config }: ObtainDeps, policy: ParsedRootSecretPolicy, path: string) {
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

/** Saved before serving: no user may get an address whose key only this process knows. */
async function saveBackup(deps: ObtainDeps & CreateBackupDeps, path: string) {
  const backup = await createBackupWithRetries(deps)
  await writeBackup(path, backup, deps.random)
  deps.log.info({ msg: 'Wrote the backup of the root secret', backup: nameBackup(backup), path })
}

const ATTEMPTS = 6
const PAUSE_MS = 10_000

/** The secret is here already, perhaps from custodians, and a temporary failure must not lose it. */
async function createBackupWithRetries(deps: ObtainDeps & CreateBackupDeps): Promise<Backup> {
  for (let attempt = 1; ; attempt++) {
    try {
      const backup = await createBackup(deps)
      // Verify under our own policy: an enclave that isn't listed could pass its secret to no other, and no custodian would accept its
      // backup.
      const isMock = deps.config.quoteSource === 'mock'
      await verifyBackup({ verifier: deps.verifier, isMock, madeUnder: deps }, backup)
      return backup
    } catch (error) {
      const reason = toPassingReason(error)
      if (reason === undefined || attempt === ATTEMPTS) throw error
      deps.log.warn({ msg: 'Could not make the backup yet', reason, attempt, attempts: ATTEMPTS })
      await deps.wait(PAUSE_MS)
    }
  }
}

/** An outage of the quote or collateral service, or a clock a few seconds behind Intel's, which has just issued the collateral. */
function toPassingReason(error: unknown): string | undefined {
  if (error instanceof EvidenceError || error instanceof VendorError) return error.code
  if (!(error instanceof BackupError && error.cause instanceof QuoteError)) return undefined
  const { code } = error.cause
  return code === 'crl_not_yet_valid' || code.endsWith('_not_in_date') ? code : undefined
}
