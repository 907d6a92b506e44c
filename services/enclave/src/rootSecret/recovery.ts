import type { Verifier } from '@countersign/attestation/core'
import {
  computeRecoveryReportData,
  type EnclaveSettings,
  enclavePaths,
  fromHex,
  hashEnclaveConfig,
  rootSecretPaths,
  toHex,
} from '@countersign/protocol/core'
import {
  type Backup,
  BackupError,
  hashBackup,
  nameBackup,
  type ParsedRootSecretPolicy,
  type RecoveryRequest,
  type RecoveryResponse,
  recoveryRequest,
  type ShareRequest,
  type ShareResponse,
  shareRequest,
  verifyBackup,
} from '@countersign/root-secret'
import type { Log } from '@countersign/service'
import { createCallQueue } from '../callQueue.ts'
import { EnclaveError } from '../errors.ts'
import { parseBody, parseRequest } from '../parseRequest.ts'
import { type App, type Call, serveCalls } from '../serveCalls.ts'
import { createEvidenceForCaller, type EvidenceDeps } from './createEvidence.ts'
import { RootSecretError, type RootSecretHolder } from './rootSecretHolder.ts'

export type RecoveryDeps = EvidenceDeps & {
  settings: EnclaveSettings
  backup: Backup
  policy: ParsedRootSecretPolicy
  /** With the roots of our own mode only. */
  verifier: Verifier
  holder: Pick<RootSecretHolder, 'expectShares' | 'addShare'>
  /** Further members of `GET /health`. */
  health: Readonly<Record<string, string>>
  log: Log
}

export type Recovery = {
  /** Answers while the enclave waits for its shares. */
  app: App
  needed: number
  /** The policy's custodians or threshold differ from the backup's, so a new backup is needed. */
  needsNewBackup: boolean
  /** Resolves when the secret is there. */
  recovered: Promise<void>
}

const MAX_WAITING = 4

/**
 * Serves an enclave without its secret. It shows custodians a quote over its key and accepts the shares that they seal to it. Only custodians
 * of our own policy count, and as many as it requires.
 */
export async function startRecovery(deps: RecoveryDeps): Promise<Recovery> {
  const { backup, policy, holder, log } = deps
  const isOurs = backup.policyHash === policy.policyHash
  const isMock = deps.config.quoteSource === 'mock'
  await verifyBackup({ verifier: deps.verifier, isMock, madeUnder: isOurs ? policy : undefined }, backup)
  const { threshold, keys } = policy.policy.custodians
  const backupHash = hashBackup(backup)
  const configHash = hashEnclaveConfig(deps.config)
  const needed = Math.max(backup.threshold, threshold)
  const custodians = backup.shares.map(({ custodian }) => custodian)
  if (custodians.filter((key) => keys.includes(key)).length < needed) {
    throw new BackupError('too few custodians of the backup are custodians of the policy')
  }
  const publicKey = await holder.expectShares({
    backupHash,
    commitment: fromHex(backup.commitment),
    needed,
    custodians: backup.shares.map(({ custodian, hash }) => ({ key: fromHex(custodian), hash: fromHex(hash) })),
  })

  const queueAttest = createCallQueue(MAX_WAITING)
  const queueShare = createCallQueue(MAX_WAITING)
  let held = 0
  let onRecovered = () => {}
  const recovered = new Promise<void>((resolve) => (onRecovered = resolve))

  async function attest({ nonce }: RecoveryRequest): Promise<RecoveryResponse> {
    const reportData = computeRecoveryReportData({ nonce: fromHex(nonce), publicKey, backupHash, configHash })
    const evidence = await createEvidenceForCaller(deps, reportData)
    return { publicKey: toHex(publicKey), backupHash: nameBackup(backup), evidence, settings: deps.settings }
  }

  async function addShare({ index, enc, ciphertext }: ShareRequest): Promise<ShareResponse> {
    try {
      if (!keys.includes(custodians[index] ?? '')) throw new RootSecretError('no such custodian')
      const answer = await holder.addShare({ index, sealed: { enc: fromHex(enc), ciphertext: fromHex(ciphertext) } })
      held = answer.held
      log.info({ msg: 'Got a share of the root secret', custodian: index, held, needed })
      if (held >= needed) onRecovered()
      return answer
    } catch (cause) {
      if (!(cause instanceof RootSecretError)) throw cause
      throw new EnclaveError('share_refused', 'the share is not accepted', { details: cause.refusal, cause })
    }
  }

  async function dispatch({ method, path, body }: Call): Promise<unknown> {
    if (path === '/health') {
      if (method !== 'GET') throw new EnclaveError('method_not_allowed', 'use GET')
      return { status: 'waiting', ...deps.health, shares: { held, needed } }
    }
    if (path === rootSecretPaths.recovery || path === rootSecretPaths.share) {
      if (method !== 'POST') throw new EnclaveError('method_not_allowed', 'use POST')
      if (path === rootSecretPaths.recovery) {
        const request = parseRequest(recoveryRequest, parseBody(body))
        return queueAttest(() => attest(request))
      }
      const request = parseRequest(shareRequest, parseBody(body))
      return queueShare(() => addShare(request))
    }
    const isLater = [...Object.values(enclavePaths), ...Object.values(rootSecretPaths)].some((other) => other === path)
    if (!isLater) throw new EnclaveError('not_found', 'no such call')
    throw new EnclaveError('root_secret_missing', 'the enclave waits for its root secret')
  }

  return {
    app: serveCalls({ dispatch, log }),
    needed,
    needsNewBackup: backup.threshold !== threshold || custodians.join() !== keys.join(),
    recovered,
  }
}
