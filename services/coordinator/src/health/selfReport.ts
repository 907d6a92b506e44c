import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { assertReportState, PolicyError, QuoteError, type VerifiedReport } from '@countersign/attestation'
import type { ReportSource } from '@countersign/evidence'
import { computeSnpReportData, equalBytes, fromHex, ServiceError, toHex } from '@countersign/protocol'
import type { SelfAttestation } from '@countersign/receipt'
import type { Log } from '@countersign/service'
import { createEd25519Signer } from '../ed25519.ts'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Schedule, SelfReport } from '../ports.ts'
import { systemSchedule } from '../system.ts'
import { type SnpCertificates, toHexChain } from './snpCertificates.ts'
import type { SnpRevocations } from './snpRevocations.ts'

export type SelfReportDeps = {
  reportSource: ReportSource
  certificates: SnpCertificates
  revocations?: SnpRevocations
  /** 32 bytes, hex: of the coordinator's own configuration. */
  configHash: string
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** Ed25519, made at start and never stored. */
  generateKey?: () => { publicKey: KeyObject; privateKey: KeyObject }
  refreshMs?: number
  /** How long a report is shown after it was made, if no newer one can be had. */
  lifetimeMs?: number
  schedule?: Schedule
}

/** Firmware answers about one request a second, so that failures are not repeated faster than this. */
const FIRST_RETRY_MS = 5_000

/** A report on the coordinator's own key, made at start and refreshed in the background; no request waits for the firmware. */
export function createSelfReport(deps: SelfReportDeps): SelfReport & {
  /** Resolves when the first attempt is over, whatever came of it. */
  ready(): Promise<void>
} {
  const { reportSource, clock, log, configHash } = deps
  const { refreshMs = 600_000, lifetimeMs = 3_600_000, schedule = systemSchedule } = deps
  const { generateKey = () => generateKeyPairSync('ed25519') } = deps
  const { publicKey, privateKey } = generateKey()
  const rawPublicKey = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
  const reportData = computeSnpReportData({ publicKey: rawPublicKey, configHash: fromHex(configHash) })

  let inForce: { selfAttestation: SelfAttestation; revocations?: string; expiresAt: number } | undefined
  let failures = 0
  let callOff = () => {}
  let isStopped = false
  let underWay = refresh()
  const first = underWay

  async function refresh() {
    let delayMs = refreshMs
    try {
      inForce = await attest()
      failures = 0
      log.info({ msg: 'Attested the coordinator', mode: reportSource.mode })
    } catch (error) {
      delayMs = Math.min(FIRST_RETRY_MS * 2 ** failures, refreshMs)
      failures += 1
      const code = error instanceof ServiceError ? error.code : error instanceof Error ? error.name : typeof error
      // What AMD no longer vouches for must not be shown until it expires by itself.
      if (code === 'certificate_revoked') inForce = undefined
      log.warn({ msg: 'Could not attest the coordinator', code, delayMs })
    }
    if (!isStopped) callOff = schedule(() => (underWay = refresh()), delayMs)
  }

  async function attest() {
    const fetchedAt = clock.now()
    const evidence = await reportSource.getReport(reportData)
    const { certificates, verified } = await deps.certificates(evidence, new Date(fetchedAt))
    assertOurs(verified)
    const list = await deps.revocations?.({ certificates, verified }, new Date(fetchedAt))
    const selfAttestation: SelfAttestation = {
      reportHex: toHex(evidence.report),
      certificates: toHexChain(certificates),
      measurement: toHex(verified.body.measurement),
      configHash,
      fetchedAt: new Date(fetchedAt).toISOString(),
    }
    return {
      selfAttestation,
      ...(list === undefined ? {} : { revocations: toHex(list) }),
      expiresAt: Math.min(fetchedAt + lifetimeMs, verified.validity.notAfter),
    }
  }

  /**
   * What a source says of itself must be what its evidence proves: mock evidence never passes for hardware. And a guest in a state that
   * readers refuse would release signatures whose receipts all fail.
   */
  function assertOurs(verified: VerifiedReport) {
    const { root, body } = verified
    if (root.mode !== reportSource.mode) throw new QuoteError('root_not_trusted', 'the report is of another mode')
    if (!equalBytes(body.reportData, reportData)) throw new PolicyError('report_data_mismatch', 'not our report')
    assertReportState(verified)
  }

  return {
    mode: reportSource.mode,
    publicKey: toHex(rawPublicKey),
    current() {
      if (inForce === undefined || inForce.expiresAt <= clock.now()) {
        throw new CoordinatorError('attestation_invalid', 'the coordinator has no attestation of its own in force')
      }
      return { ...inForce, expiresAt: new Date(inForce.expiresAt).toISOString() }
    },
    sign: createEd25519Signer(Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url')),
    ready: () => first,
    async stop() {
      isStopped = true
      callOff()
      await underWay
    },
  }
}
