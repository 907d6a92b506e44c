import type { IncomingHttpHeaders } from 'node:http'
import { EvidenceError } from '@countersign/evidence'
import { type EnclaveErrorBody, enclavePaths, type SignItem, type SignItemResult } from '@countersign/protocol'
import { type AttestDeps, createAttestor } from './attest.ts'
import type { Callers } from './caller.ts'
import { EnclaveError, type EnclaveErrorCode } from './errors.ts'
import { type OpenSessionDeps, openSession } from './grant/openSession.ts'
import { parseAttestRequest, parseBody, parseOpenSessionRequest, parseSignTransactionsRequest } from './parseRequest.ts'
import type { Log } from './ports.ts'
import type { Batcher } from './sign/batch.ts'
import { signTransactions } from './sign/signTransactions.ts'

type Call = { method: string; path: string; headers: IncomingHttpHeaders; body: Uint8Array }
type Reply = { status: number; body: unknown }

export type App = {
  handle(call: Call): Promise<Reply>
  isStopping(): boolean
  /** Refuses new calls and resolves when those under way have been answered. */
  stop(): Promise<void>
}

export type AppDeps = AttestDeps & OpenSessionDeps & { callers: Callers; batcher: Batcher; log: Log; version: string }

const STATUS: Record<EnclaveErrorCode, number> = {
  invalid_json: 400,
  invalid_request: 400,
  body_too_large: 413,
  not_found: 404,
  method_not_allowed: 405,
  caller_signature_invalid: 401,
  caller_clock_skew: 401,
  caller_unknown: 401,
  caller_not_allowed: 403,
  id_token_invalid: 403,
  id_token_replayed: 403,
  issuer_unavailable: 503,
  quote_unavailable: 503,
  shutting_down: 503,
  internal: 500,
}

/** The enclave's calls: `attest`, `openSession`, `signTransactions`, and `GET /health`. It does not listen. */
export function createApp(deps: AppDeps): App {
  let underWay = 0
  let isStopping = false
  let onIdle: (() => void) | undefined
  const attest = createAttestor(deps)

  async function dispatch(call: Call): Promise<unknown> {
    if (call.path === '/health') {
      if (call.method !== 'GET') throw new EnclaveError('method_not_allowed', 'use GET')
      return {
        status: 'ok',
        mode: deps.quoteSource.mode,
        version: deps.version,
        bootId: Buffer.from(deps.bootId).toString('hex'),
      }
    }
    if (!Object.values(enclavePaths).some((path) => path === call.path))
      throw new EnclaveError('not_found', 'no such call')
    if (call.method !== 'POST') throw new EnclaveError('method_not_allowed', 'use POST')
    const caller = await deps.callers.verify(call)
    const body = parseBody(call.body)
    if (call.path === enclavePaths.attest) {
      const request = parseAttestRequest(body)
      if (request.caller !== undefined) await deps.callers.introduce(caller, request.caller)
      deps.callers.assertAllowed(caller)
      return attest(request)
    }
    deps.callers.assertAllowed(caller)
    if (call.path === enclavePaths.openSession) return openSession(deps, parseOpenSessionRequest(body))
    return signAll(parseSignTransactionsRequest(body).items, caller)
  }

  async function signAll(items: readonly (SignItem | undefined)[], coordinatorKey: string) {
    const whole = items.filter((item) => item !== undefined)
    const { batches, results } = await signTransactions(deps, { items: whole, coordinatorKey })
    const remaining = [...results]
    const all = items.map((item) => (item === undefined ? { error: 'invalid_request' as const } : remaining.shift()))
    return { batches, results: all as SignItemResult[] }
  }

  return {
    isStopping: () => isStopping,
    async handle(call) {
      if (isStopping) return toReply(new EnclaveError('shutting_down', 'the enclave is stopping'))
      underWay += 1
      try {
        return { status: 200, body: await dispatch(call) }
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
      await deps.batcher.drain()
    },
  }
}

function toEnclaveError(error: unknown, log: Log, path: string): EnclaveError {
  if (error instanceof EnclaveError) {
    log.warn('Refused a call', { path, code: error.code, reason: error.details })
    return error
  }
  if (error instanceof EvidenceError) {
    log.error('Got no quote', { path, code: error.code })
    return new EnclaveError('quote_unavailable', 'no quote could be had', { cause: error })
  }
  // Its message could hold anything; its name says enough to look for it.
  log.error('Failed', { path, reason: error instanceof Error ? error.name : typeof error })
  return new EnclaveError('internal', 'internal error')
}

function toReply(error: EnclaveError): Reply {
  const body: EnclaveErrorBody = { error: { code: error.code, message: error.message } }
  return { status: STATUS[error.code], body }
}
