import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { assertReportState, PolicyError, QuoteError, type VerifiedReport } from '@countersign/attestation'
import type { ReportSource } from '@countersign/evidence'
import { computeSnpReportData, computeSnpReportDataV2, equalBytes, fromHex, toHex } from '@countersign/protocol'
import type { SelfAttestation } from '@countersign/receipt'
import { assembleCoordinator, encodeBlock } from '@countersign/receipt'
import type { Log } from '@countersign/service'
import { createEd25519Signer } from '@countersign/service/ed25519'
import { CoordinatorError } from '../../../errors.ts'
import { type Clock, type Schedule, systemSchedule } from '../../../system.ts'
import { toReason } from '../../../toReason.ts'
import { type SnpCertificates, toHexChain } from './snpCertificates.ts'
import type { SnpRevocations } from './snpRevocations.ts'

/** The attestations of the coordinator's own keys, refreshed together in the background. */
export type SelfReport = {
  readonly mode: 'hardware' | 'mock'
  /** 32 bytes, hex: the attested Ed25519 key. */
  readonly publicKey: string
  /** The current ones. Throws if there are none. */
  current(): {
    selfAttestation: SelfAttestation
    /** The block with the report over both keys, in canonical bytes. Releases of version 2 name it. */
    coordinator: Uint8Array<ArrayBuffer>
    /** AMD's revocation list in hex, if available. */
    revocations?: string
    expiresAt: string
  }
  /** Signs with the attested Ed25519 key. */
  sign(message: Uint8Array): Uint8Array
  /** Signs with the attested ML-DSA-65 key on a thread of the pool. Hedged, so two signatures always differ. */
  signMlDsa65(message: Uint8Array): Promise<Uint8Array>
  stop(): Promise<void>
}

export type SelfReportDeps = {
  reportSource: ReportSource
  certificates: SnpCertificates
  revocations?: SnpRevocations
  /** The hash of the coordinator's configuration: 32 bytes, hex. */
  configHash: string
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** Called at start. The keys are never stored. */
  generateKey?: (kind: 'ed25519' | 'ml-dsa-65') => { publicKey: KeyObject; privateKey: KeyObject }
  schedule?: Schedule
}

const REFRESH_MS = 600_000
/** How long a report may be shown if no newer one is available. */
const LIFETIME_MS = 3_600_000
/** The firmware answers about one request per second, so failures are not retried faster than this. */
const FIRST_RETRY_MS = 5_000

/**
 * Reports on the coordinator's own keys, made at start and refreshed in the background. No request waits for the firmware. There are two
 * reports, because each holds one report data: one over the Ed25519 key (health, enclaves and receipts of version 1) and one over both keys.
 * They are replaced together.
 */
export function createSelfReport(deps: SelfReportDeps): SelfReport & {
  /** Resolves when the first attempt has succeeded or failed. */
  ready(): Promise<void>
} {
  const { reportSource, clock, log, configHash } = deps
  const { schedule = systemSchedule, generateKey = generateKeyPair } = deps
  const { publicKey, privateKey } = generateKey('ed25519')
  const { publicKey: mlDsa65PublicKey, privateKey: mlDsa65PrivateKey } = generateKey('ml-dsa-65')
  const ed25519 = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
  const mlDsa65 = toMlDsa65Bytes(mlDsa65PublicKey)
  const keys = { ed25519: toHex(ed25519), mlDsa65: toHex(mlDsa65) }
  const reportData = computeSnpReportData({ publicKey: ed25519, configHash: fromHex(configHash) })
  const reportDataV2 = computeSnpReportDataV2({ ed25519, mlDsa65, configHash: fromHex(configHash) })

  let inForce: (Omit<ReturnType<SelfReport['current']>, 'expiresAt'> & { expiresAt: number }) | undefined
  let failures = 0
  let callOff = () => {}
  let isStopped = false
  let underWay = refresh()
  const first = underWay

  async function refresh() {
    let delayMs = REFRESH_MS
    try {
      inForce = await attest()
      failures = 0
      log.info({ msg: 'Attested the coordinator', mode: reportSource.mode })
    } catch (error) {
      delayMs = Math.min(FIRST_RETRY_MS * 2 ** failures, REFRESH_MS)
      failures += 1
      const reason = toReason(error)
      // Stop showing a report as soon as AMD revokes its certificate.
      if (reason.code === 'certificate_revoked') inForce = undefined
      log.warn({ msg: 'Could not attest the coordinator', ...reason, delayMs })
    }
    if (!isStopped) callOff = schedule(() => (underWay = refresh()), delayMs)
  }

  /** In sequence: the firmware takes about one request per second, and the driver blocks meanwhile. */
  async function attest() {
    const fetchedAt = clock.now()
    const first = await getReport(reportData, fetchedAt)
    const second = await getReport(reportDataV2, fetchedAt)
    const list = await deps.revocations?.(first.checkedReport, new Date(fetchedAt))
    const shared = { configHash, fetchedAt: new Date(fetchedAt).toISOString() }
    const { reportHex, certificates, measurement } = first
    const expiresAt = Math.min(fetchedAt + LIFETIME_MS, first.notAfter, second.notAfter)
    const block = { reportHex: second.reportHex, certificates: second.certificates, keys, ...shared }
    // A reader checks the list at the time of signing, which may be the last moment of this attestation.
    const lasts = list !== undefined && list.nextUpdate.getTime() >= expiresAt
    return {
      selfAttestation: { reportHex, certificates, measurement, ...shared },
      coordinator: encodeBlock(
        'coordinator',
        assembleCoordinator({ ...block, ...(lasts ? { revocations: toHex(list.bytes) } : {}) }),
      ),
      ...(list === undefined ? {} : { revocations: toHex(list.bytes) }),
      expiresAt,
    }
  }

  async function getReport(expected: Uint8Array<ArrayBuffer>, at: number) {
    const evidence = await reportSource.getReport(expected)
    const checkedReport = await deps.certificates(evidence, new Date(at))
    const { certificates, verified } = checkedReport
    assertOurs(verified, expected)
    return {
      checkedReport,
      reportHex: toHex(evidence.report),
      certificates: toHexChain(certificates),
      measurement: toHex(verified.body.measurement),
      notAfter: verified.validity.notAfter,
    }
  }

  /**
   * The source's claims must match its evidence: mock evidence never passes for hardware. If a reader would reject the guest's state, every
   * receipt released here would fail.
   */
  function assertOurs(verified: VerifiedReport, expected: Uint8Array) {
    const { root, body } = verified
    if (root.mode !== reportSource.mode) throw new QuoteError('root_not_trusted', 'the report is of another mode')
    if (!equalBytes(body.reportData, expected)) throw new PolicyError('report_data_mismatch', 'not our report')
    assertReportState(verified)
  }

  return {
    mode: reportSource.mode,
    publicKey: keys.ed25519,
    current() {
      if (inForce === undefined || inForce.expiresAt <= clock.now()) {
        throw new CoordinatorError('attestation_invalid', 'the coordinator has no valid attestation')
      }
      return { ...inForce, expiresAt: new Date(inForce.expiresAt).toISOString() }
    },
    sign: createEd25519Signer(Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url')).sign,
    signMlDsa65: createMlDsa65Signer(mlDsa65PrivateKey),
    ready: () => first,
    async stop() {
      isStopped = true
      callOff()
      await underWay
    },
  }
}

function generateKeyPair(kind: 'ed25519' | 'ml-dsa-65') {
  return kind === 'ed25519' ? generateKeyPairSync(kind) : generateKeyPairSync(kind)
}

const signOnPool = promisify(sign)

/** Signs with ML-DSA-65 (FIPS 204, pure, empty context). Takes milliseconds on a thread of the pool. */
export function createMlDsa65Signer(privateKey: KeyObject): (message: Uint8Array) => Promise<Uint8Array> {
  return (message) => signOnPool(null, message, privateKey)
}

/** The 1,952 bytes of the key, which are the end of its SubjectPublicKeyInfo. */
export function toMlDsa65Bytes(publicKey: KeyObject): Uint8Array<ArrayBuffer> {
  return new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }).subarray(-1_952))
}
