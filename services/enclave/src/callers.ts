import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import {
  assertReportPolicy,
  PolicyError,
  QuoteError,
  type ReportPolicy,
  type Verifier,
} from '@countersign/attestation/core'
import {
  CALLER_TOLERANCE_MS,
  type CallerAttestation,
  callerHeaders,
  computeSnpReportData,
  fromHex,
  toCallerMessage,
} from '@countersign/protocol/core'
import { isEd25519Signature } from '@countersign/service/ed25519'
import { EnclaveError } from './errors.ts'
import type { Clock } from './ports.ts'

/** The coordinators that may call: any that signs its calls, or those whose report satisfies a policy. */
export type CallerPolicy =
  | { kind: 'any' }
  | {
      kind: 'attested'
      report: Omit<ReportPolicy, 'reportData'>
      configHashes: readonly string[]
      /** Whether a caller must bring AMD's revocation list. If it brings one, the list is always checked. */
      requireRevocations: boolean
    }

/** A caller whose signature was verified before its body was read, and the hash of the body that it signed. */
export type Admitted = { caller: string; bodyHash: string }

export type Callers = {
  /**
   * Checks a call by its headers, before its body is read. Throws if the call would be rejected with any body. Undefined for a caller that
   * doesn't name its body's hash, or that still has to introduce itself.
   */
  admit(head: { headers: IncomingHttpHeaders; path: string; isIntroduction: boolean }): Promise<Admitted | undefined>
  /** Returns the key that signed a call. Throws if none did. */
  verify(call: {
    headers: IncomingHttpHeaders
    path: string
    body: Uint8Array
    admitted?: Admitted | undefined
  }): Promise<string>
  /** Admits an attested key, under an `attested` policy. */
  introduce(key: string, attestation: CallerAttestation): Promise<void>
  assertAllowed(key: string): void
}

/** How long an introduction is valid. Coordinators attest again before it ends. */
const INTRODUCTION_MS = 3_600_000
const MAX_KEYS = 1024

export function createCallers(deps: { policy: CallerPolicy; verifier: Verifier; clock: Clock }): Callers {
  const { policy, verifier, clock } = deps
  const introduced = new Map<string, number>()

  function isAllowed(key: string): boolean {
    return policy.kind === 'any' || (introduced.get(key) ?? 0) > clock.now()
  }

  function assertAllowed(key: string) {
    if (!isAllowed(key)) throw new EnclaveError('caller_unknown', 'this caller has not attested itself')
  }

  function assertSigned({ key, time, signature }: CallerSignature, path: string, bodyHash: Buffer) {
    const message = toCallerMessage({ path, timeMs: Number(time), bodyHash })
    if (!isEd25519Signature(fromHex(key), fromHex(signature), message)) throw invalid('signature')
    // Checked after the signature, so that only a genuine caller learns how far its clock is off.
    if (Math.abs(clock.now() - Number(time)) > CALLER_TOLERANCE_MS) {
      throw new EnclaveError('caller_clock_skew', 'the call is not from now')
    }
  }

  return {
    async admit({ headers, path, isIntroduction }) {
      const signed = readSignature(headers)
      if (!isIntroduction) assertAllowed(signed.key)
      const bodyHash = headers[callerHeaders.bodyHash]
      if (bodyHash === undefined || !isAllowed(signed.key)) return undefined
      if (typeof bodyHash !== 'string' || !/^[0-9a-f]{64}$/.test(bodyHash)) throw invalid('body hash')
      assertSigned(signed, path, Buffer.from(bodyHash, 'hex'))
      return { caller: signed.key, bodyHash }
    },

    async verify({ headers, path, body, admitted }) {
      const bodyHash = hash('sha256', body, 'buffer')
      if (admitted !== undefined) {
        if (bodyHash.toString('hex') !== admitted.bodyHash) throw invalid('body')
        return admitted.caller
      }
      const signed = readSignature(headers)
      assertSigned(signed, path, bodyHash)
      return signed.key
    },

    async introduce(key, attestation) {
      if (policy.kind === 'any') return
      await assertAttested({ policy, verifier, clock }, key, attestation)
      if (introduced.size >= MAX_KEYS) introduced.clear()
      introduced.set(key, clock.now() + INTRODUCTION_MS)
    },

    assertAllowed,
  }
}

type CallerSignature = { key: string; time: string; signature: string }

function readSignature(headers: IncomingHttpHeaders): CallerSignature {
  const key = headers[callerHeaders.key]
  const time = headers[callerHeaders.time]
  const signature = headers[callerHeaders.signature]
  if (typeof key !== 'string' || !/^[0-9a-f]{64}$/.test(key)) throw invalid('key')
  if (typeof time !== 'string' || !/^[1-9]\d{0,15}$/.test(time)) throw invalid('time')
  if (typeof signature !== 'string' || !/^[0-9a-f]{128}$/.test(signature)) throw invalid('signature')
  return { key, time, signature }
}

async function assertAttested(
  deps: { policy: CallerPolicy & { kind: 'attested' }; verifier: Verifier; clock: Clock },
  key: string,
  { report, certificates: chain, revocations, configHash }: CallerAttestation,
) {
  const { policy, verifier, clock } = deps
  if (revocations === undefined && policy.requireRevocations) {
    throw new EnclaveError('caller_not_allowed', 'the caller brings no revocation list of AMD')
  }
  const certificates = { ek: fromHex(chain.ek), ask: fromHex(chain.ask), ark: fromHex(chain.ark) }
  const at = new Date(clock.now())
  try {
    const verified = await verifier.verifyReport({ report: fromHex(report), certificates, at })
    const reportData = computeSnpReportData({ publicKey: fromHex(key), configHash: fromHex(configHash) })
    assertReportPolicy(verified, { ...policy.report, reportData })
    if (revocations !== undefined) await verifier.verifyRevocations({ certificates, list: fromHex(revocations), at })
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    throw new EnclaveError('caller_not_allowed', 'the caller’s report is not accepted', { details: cause.code, cause })
  }
  if (!policy.configHashes.includes(configHash)) {
    throw new EnclaveError('caller_not_allowed', 'the caller’s configuration is not accepted')
  }
}

function invalid(details: string) {
  return new EnclaveError('caller_signature_invalid', 'the call is not signed', { details })
}
