import { lstat } from 'node:fs/promises'
import {
  computeBackupReportData,
  type EnclaveSettings,
  fromHex,
  hashEnclaveConfig,
  toHex,
} from '@countersign/protocol/core'
import {
  type Backup,
  BackupError,
  createBackupBody,
  hashBackup,
  type RootSecretPolicy,
  toBackupFile,
} from '@countersign/root-secret'
import { assertWritable, readCode, writeNewFile } from '@countersign/service'
import type { Clock, Random } from '../ports.ts'
import { createEvidence, type EvidenceDeps } from './createEvidence.ts'
import type { RootSecretHolder } from './rootSecretHolder.ts'

export type CreateBackupDeps = EvidenceDeps & {
  settings: EnclaveSettings
  policy: RootSecretPolicy
  policyHash: string
  holder: Pick<RootSecretHolder, 'share'>
  clock: Clock
}

/** Splits the secret among the policy's custodians, with a quote over the whole backup. */
export async function createBackup(deps: CreateBackupDeps): Promise<Backup> {
  const { threshold, keys } = deps.policy.custodians
  const configHash = hashEnclaveConfig(deps.config)
  const { commitment, shares } = await deps.holder.share({
    policyHash: fromHex(deps.policyHash),
    custodians: keys.map(fromHex),
    threshold,
  })
  const body = createBackupBody({
    createdAt: new Date(deps.clock.now()).toISOString(),
    policyHash: deps.policyHash,
    configHash: toHex(configHash),
    settings: deps.settings,
    threshold,
    commitment: toHex(commitment),
    shares: shares.map(({ enc, ciphertext, hash }, index) => ({
      custodian: keys[index] ?? '',
      enc: toHex(enc),
      ciphertext: toHex(ciphertext),
      hash: toHex(hash),
    })),
  })
  const reportData = computeBackupReportData({ backupHash: hashBackup(body), configHash })
  return { ...body, evidence: await createEvidence(deps, reportData) }
}

/**
 * Checks that no backup exists at this path and that one can be written. A second secret would mean a second set of wallets, and overwriting
 * would lose a backup. A wrong folder, or a file system without links, must show before custodians submit.
 */
export async function assertRoomForBackup(path: string, random: Random): Promise<void> {
  await assertNoBackup(path)
  await assertWritable({ path, random })
}

async function assertNoBackup(path: string) {
  const isThere = await lstat(path).then(
    () => true,
    (error) => {
      if (readCode(error) === 'ENOENT') return false
      throw new BackupError(`cannot find out whether there is a backup already: ${readCode(error)}`)
    },
  )
  if (isThere) throw new BackupError('there is a backup already: join a running enclave, or recover from it')
}

/** Returns when the file is durable. Never replaces a file. */
export async function writeBackup(path: string, backup: Backup, random: Random): Promise<void> {
  try {
    await writeNewFile({ path, text: toBackupFile(backup), mode: 0o644, random })
  } catch (error) {
    if (readCode(error) === 'EEXIST') await assertNoBackup(path)
    throw error
  }
}
