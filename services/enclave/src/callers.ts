import { hash, type KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { assertReportPolicy, PolicyError, QuoteError, type ReportPolicy, type Verifier } from '@countersign/attestation'
import {
  CALLER_TOLERANCE_MS,
  type CallerAttestation,
  callerHeaders,
  computeSnpReportData,
  fromHex,
  toCallerMessage,
} from '@countersign/protocol'
import { importEd25519Key, isEd25519Signature } from './ed25519.ts'
import { EnclaveError } from './errors.ts'
import type { Clock } from './ports.ts'

/** Which coordinators may call: any that signs its calls, or those whose report satisfies a policy. */
export type CallerPolicy =
  | { kind: 'any' }
  | { kind: 'attested'; report: Omit<ReportPolicy, 'reportData'>; configHashes: readonly string[] }

export type Callers = {
  /** The key that signed a call. Throws where none did. */
  verify(call: { headers: IncomingHttpHeaders; path: string; body: Uint8Array }): Promise<string>
  /** Lets an attested key in, under an `attested` policy. */
  introduce(key: string, attestation: CallerAttestation): Promise<void>
  assertAllowed(key: string): void
}

/** How long an introduction is valid; a coordinator attests again before that. */
const INTRODUCTION_MS = 3_600_000
const MAX_KEYS = 1024

export function createCallers(deps: { policy: CallerPolicy; verifier: Verifier; clock: Clock }): Callers {
  const { policy, verifier, clock } = deps
  const keys = new Map<string, KeyObject>()
  const introduced = new Map<string, number>()

  function importKey(key: string): KeyObject {
    const known = keys.get(key)
    if (known !== undefined) return known
    const imported = importEd25519Key(key)
    if (keys.size >= MAX_KEYS) keys.clear()
    keys.set(key, imported)
    return imported
  }

  return {
    async verify({ headers, path, body }) {
      const key = headers[callerHeaders.key]
      const time = headers[callerHeaders.time]
      const signature = headers[callerHeaders.signature]
      if (typeof key !== 'string' || !/^[0-9a-f]{64}$/.test(key)) throw invalid('key')
      if (typeof time !== 'string' || !/^[1-9]\d{0,15}$/.test(time)) throw invalid('time')
      if (typeof signature !== 'string' || !/^[0-9a-f]{128}$/.test(signature)) throw invalid('signature')
      const message = toCallerMessage({ path, timeMs: Number(time), bodyHash: hash('sha256', body, 'buffer') })
      if (!(await isEd25519Signature(importKey(key), message, signature))) throw invalid('signature')
      // After the signature, so that only a real caller learns how far its clock is off.
      if (Math.abs(clock.now() - Number(time)) > CALLER_TOLERANCE_MS) {
        throw new EnclaveError('caller_clock_skew', 'the call is not from now')
      }
      return key
    },

    async introduce(key, attestation) {
      if (policy.kind === 'any') return
      await assertAttested({ policy, verifier, clock }, key, attestation)
      if (introduced.size >= MAX_KEYS) introduced.clear()
      introduced.set(key, clock.now() + INTRODUCTION_MS)
    },

    assertAllowed(key) {
      if (policy.kind === 'any') return
      const until = introduced.get(key)
      if (until === undefined || until <= clock.now()) {
        throw new EnclaveError('caller_unknown', 'this caller has not attested itself')
      }
    },
  }
}

async function assertAttested(
  deps: { policy: CallerPolicy & { kind: 'attested' }; verifier: Verifier; clock: Clock },
  key: string,
  { report, certificates, configHash }: CallerAttestation,
) {
  const { policy, verifier, clock } = deps
  try {
    const verified = await verifier.verifyReport({
      report: fromHex(report),
      certificates: {
        ek: fromHex(certificates.ek),
        ask: fromHex(certificates.ask),
        ark: fromHex(certificates.ark),
      },
      at: new Date(clock.now()),
    })
    const reportData = computeSnpReportData({ publicKey: fromHex(key), configHash: fromHex(configHash) })
    assertReportPolicy(verified, { ...policy.report, reportData })
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
