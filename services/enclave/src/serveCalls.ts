import type { IncomingHttpHeaders } from 'node:http'
import { EvidenceError } from '@countersign/evidence/core'
import type { EnclaveErrorBody } from '@countersign/protocol/core'
import type { Log } from '@countersign/service'
import type { Admitted } from './callers.ts'
import { EnclaveError, errorStatus } from './errors.ts'

/** A call before its body is read. */
export type CallHead = { method: string; path: string; headers: IncomingHttpHeaders }
export type Call = CallHead & { body: Uint8Array; admitted?: Admitted | undefined }
export type Reply = { status: number; body: unknown }
/** A rejection that no body could change, or what is known of the caller. */
type Admission = { refusal: Reply } | { refusal?: undefined; admitted: Admitted | undefined }

/** Answers calls. It doesn't listen. */
export type App = {
  /** Checks a call before its body is read. */
  admit(head: CallHead): Promise<Admission>
  handle(call: Call): Promise<Reply>
  isStopping(): boolean
  /** Rejects new calls and resolves when pending ones have been answered. */
  stop(): Promise<void>
}

/** Longer than any of our paths. Callers choose paths and must not fill the log with them. */
const MAX_LOGGED_PATH = 64

/** Replies with the result of `dispatch` or with the error that it throws. Other errors become `internal`, without their text. */
export function serveCalls(deps: {
  dispatch(call: Call): Promise<unknown>
  /** Throws for a call that would be rejected with any body. */
  admit?(head: CallHead): Promise<Admitted | undefined>
  log: Log
  drain?(): Promise<void>
  /** Whether to answer a path during shutdown: calls that finish what others began. */
  isFinishing?(path: string): boolean
}): App {
  let underWay = 0
  let isStopping = false
  let onIdle: (() => void) | undefined
  return {
    isStopping: () => isStopping,
    async admit(head) {
      try {
        return { admitted: await deps.admit?.(head) }
      } catch (error) {
        return { refusal: toReply(toEnclaveError(error, deps.log, head.path)) }
      }
    },
    async handle(call) {
      if (isStopping && deps.isFinishing?.(call.path) !== true)
        return toReply(new EnclaveError('shutting_down', 'the enclave is stopping'))
      underWay += 1
      try {
        return { status: 200, body: await deps.dispatch(call) }
      } catch (error) {
        return toReply(toEnclaveError(error, deps.log, call.path))
      } finally {
        underWay -= 1
        if (underWay === 0) onIdle?.()
      }
    },
    async stop() {
      isStopping = true
      if (underWay > 0) await new Promise<void>((resolve) => (onIdle = resolve))
      await deps.drain?.()
    },
  }
}

function toEnclaveError(error: unknown, log: Log, wholePath: string): EnclaveError {
  const path = wholePath.slice(0, MAX_LOGGED_PATH)
  if (error instanceof EnclaveError) {
    log.warn({ msg: 'Refused a call', path, code: error.code, reason: error.details })
    return error
  }
  if (error instanceof EvidenceError) {
    log.error({ msg: 'Got no quote', path, code: error.code })
    return new EnclaveError('quote_unavailable', 'no quote could be made', { cause: error })
  }
  // The message could contain anything. The name is enough to search for.
  log.error({ msg: 'Failed', path, reason: error instanceof Error ? error.name : typeof error })
  return new EnclaveError('internal', 'internal error')
}

export function toReply(error: EnclaveError): Reply {
  const body: EnclaveErrorBody = { error: { code: error.code, message: error.message } }
  return { status: errorStatus[error.code], body }
}
