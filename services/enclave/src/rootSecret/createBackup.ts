import { link, lstat, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { computeBackupReportData, fromHex, hashEnclaveConfig, toHex } from '@countersign/protocol'
import type { Custody } from '../keys/custody.ts'
import type { Clock, Random } from '../ports.ts'
import { createEvidence, type EvidenceDeps } from '../transfer/peerEvidence.ts'
import type { RootSecretPolicy } from '../transfer/rootSecretPolicy.ts'
import { type Backup, BackupError, createBackupBody, hashBackup, toBackupFile } from './backup.ts'

export type CreateBackupDeps = EvidenceDeps & {
  policy: RootSecretPolicy
  policyHash: string
  custody: Pick<Custody, 'share'>
  clock: Clock
}

/** Has the vault split its secret among the policy's custodians, and a quote made over the whole. */
export async function createBackup(deps: CreateBackupDeps): Promise<Backup> {
  const { threshold, keys } = deps.policy.custodians
  const configHash = hashEnclaveConfig(deps.config)
  const { commitment, shares } = await deps.custody.share({
    policyHash: fromHex(deps.policyHash),
    custodians: keys.map(fromHex),
    threshold,
  })
  const body = createBackupBody({
    createdAt: new Date(deps.clock.now()).toISOString(),
    policyHash: deps.policyHash,
    configHash: toHex(configHash),
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
 * There is no backup at this path, and one can be written: a second secret would be a second set of wallets, an overwritten
 * backup a lost one, and a mistyped folder must not be noticed only when all custodians have come.
 */
export async function assertRoomForBackup(path: string, random: Random): Promise<void> {
  await assertNoBackup(path)
  await withDraft({ path, random, text: '' }, async () => {})
}

async function assertNoBackup(path: string) {
  const isThere = await lstat(path).then(
    () => true,
    (error) => {
      if (error.code === 'ENOENT') return false
      throw new BackupError(`nobody can tell whether there is a backup already: ${error.code}`)
    },
  )
  if (isThere) throw new BackupError('there is a backup already: join a running enclave, or recover from it')
}

/** On disk for good before it returns: written whole and synced under another name, then linked. Never replaces a file. */
export async function writeBackup(path: string, backup: Backup, random: Random): Promise<void> {
  try {
    await withDraft({ path, random, text: toBackupFile(backup) }, (draft) => link(draft, path))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') await assertNoBackup(path)
    throw error
  }
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

type Draft = { path: string; random: Random; text: string }

/** Lends a file beside the path, and removes it. */
async function withDraft({ path, random, text }: Draft, use: (draft: string) => Promise<void>) {
  const draft = `${path}.${toHex(random(8))}.draft`
  try {
    const file = await open(draft, 'wx', 0o644)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await use(draft)
  } finally {
    await rm(draft, { force: true })
  }
}
