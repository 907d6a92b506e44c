import { setTimeout } from 'node:timers/promises'
import { enclavePaths, type ReleaseRequest, type ReleaseResponse } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../../errors.ts'
import { toReason } from '../../toReason.ts'
import { type EnclaveEndpoint, EndpointError } from './enclaveEndpoint.ts'
import type { EnclaveLog, EnclaveTerms, KeyEnclave } from './keyEnclave.ts'
import { parseLogResponse, parseReleaseResponse } from './parseAnswers.ts'

/** How long to keep asking the boot that signed for its statements, and the limit of each of these calls. Each call waits for a quote. */
const RELEASE_MS = 5_000
const RELEASE_CALL_MS = 2_000
const RELEASE_PAUSE_MS = 50
/** The same enclave would answer the same again, also with an answer that is too large. */
const FINAL_CODES: ReadonlySet<string> = new Set(['refused', 'not_attested', 'answer_malformed'])

/** Calls about logs. Each goes to one enclave, because each has its own log and pending statements. */
export function createLogCalls(deps: {
  endpoints: readonly EnclaveEndpoint[]
  log: Pick<Log, 'warn'>
  isStopped(): boolean
}): Pick<KeyEnclave, 'release' | 'logs'> {
  const { endpoints, log, isStopped } = deps

  /** Calls the boot that signed, and no other. Repeating the call is harmless. */
  async function release(request: ReleaseRequest): Promise<ReleaseResponse> {
    const { bootId, leaves = [] } = request
    const endpoint = endpoints.find((one) => one.isBoot(bootId))
    const endsAt = performance.now() + RELEASE_MS
    for (;;) {
      if (endpoint?.isBoot(bootId) !== true) throw logUnavailable()
      try {
        return await endpoint.call({
          path: enclavePaths.release,
          request,
          parse: (body) => parseReleaseResponse(body, leaves.length),
          isRepeatable: true,
          timeoutMs: RELEASE_CALL_MS,
          finish: (response) => response,
        })
      } catch (error) {
        if (!(error instanceof EndpointError)) throw error
        log.warn({
          msg: 'Could not use an enclave',
          enclave: endpoint.origin,
          path: enclavePaths.release,
          ...toReason(error),
        })
        const isOver = isStopped() || performance.now() >= endsAt
        if (isOver || FINAL_CODES.has(error.code)) throw logUnavailable(error)
        await setTimeout(RELEASE_PAUSE_MS)
      }
    }
  }

  return { release, logs: endpoints.map(toLog) }
}

/** The log of one enclave. The enclave's reason for a rejection is in `details`. */
function toLog(endpoint: EnclaveEndpoint): EnclaveLog {
  async function orUnavailable<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call
    } catch (error) {
      throw error instanceof EndpointError ? logUnavailable(error) : error
    }
  }
  return {
    address: endpoint.origin,
    getTerms: () => orUnavailable<EnclaveTerms>(endpoint.getTerms()),
    call: (request) =>
      orUnavailable(
        endpoint.call({
          path: enclavePaths.log,
          request,
          parse: parseLogResponse,
          isRepeatable: true,
          bootIdOf: ({ bootId }) => bootId,
          finish: (response) => response,
        }),
      ),
  }
}

export function logUnavailable(cause?: unknown): CoordinatorError {
  const details = cause instanceof EndpointError && cause.code === 'refused' ? cause.details : undefined
  return new CoordinatorError('log_unavailable', 'the log of the enclave cannot be used', { details, cause })
}

/** Splits a cosigned note as a release needs it: the enclave's checkpoint, and the witnesses' lines. The log's own line comes first. */
export function toCosigned(note: string): Required<Pick<ReleaseRequest, 'checkpoint' | 'cosignatures'>> {
  const end = note.lastIndexOf('\n\n') + '\n\n'.length
  const [log = '', ...cosignatures] = note.slice(end).trimEnd().split('\n')
  return { checkpoint: `${note.slice(0, end)}${log}\n`, cosignatures }
}

/** The verifier key of a log from the enclave's attestation. Undefined if the settings don't contain the origin. */
export function findLogKey({ logs }: EnclaveTerms, origin: string): string | undefined {
  // Compare strings, because parsing a key takes a millisecond. Each key was validated on arrival, and an origin contains no plus sign.
  return logs?.keys.find((vkey) => vkey.startsWith(`${origin}+`))
}
