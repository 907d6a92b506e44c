import { setTimeout } from 'node:timers/promises'
import {
  attestRequest,
  enclavePaths,
  logRequest,
  openSessionRequest,
  releaseRequest,
  rootSecretPaths,
  vaultRequest,
} from '@countersign/protocol/core'
import { transferRequest } from '@countersign/root-secret'
import type { Log } from '@countersign/service'
import { type AttestDeps, createAttestor } from './attest.ts'
import type { Callers } from './callers.ts'
import { EnclaveError } from './errors.ts'
import { type OpenSessionDeps, openSession } from './grant/openSession.ts'
import { type ParsedSignItems, parseBody, parseRequest, parseSignItemsRequest } from './parseRequest.ts'
import type { Donor } from './rootSecret/donor.ts'
import { type App, type Call, type CallHead, serveCalls } from './serveCalls.ts'
import { type SignItemsDeps, signItems, signLoggedItems } from './sign/signItems.ts'
import { type DeriveVaultDeps, deriveVault } from './vault/deriveVault.ts'

export type AppDeps = AttestDeps &
  OpenSessionDeps &
  SignItemsDeps &
  DeriveVaultDeps & {
    callers: Callers
    log: Log
    version: string
    /** Present with an attested root secret: gives the secret to joining enclaves. */
    donor?: Donor
  }

/** How long shutdown waits for coordinators to fetch and acknowledge statements. */
const DRAIN_MS = 5_000

/** Handles the enclave's calls: `attest`, `openSession`, `sign`, `vault`, `log`, `release` and `GET /health`. It doesn't listen. */
export function createApp(deps: AppDeps): App {
  const attest = createAttestor(deps)

  async function dispatch(call: Call): Promise<unknown> {
    if (call.path === '/health') {
      if (call.method !== 'GET') throw new EnclaveError('method_not_allowed', 'use GET')
      return {
        status: deps.time.isKnown() ? 'ok' : 'waiting',
        mode: deps.quoteSource.mode,
        version: deps.version,
        bootId: Buffer.from(deps.bootId).toString('hex'),
      }
    }
    const { donor } = deps
    const isTransfer = call.path === rootSecretPaths.challenge || call.path === rootSecretPaths.transfer
    const isCall = Object.values(enclavePaths).some((path) => path === call.path)
    if (!isCall && !(isTransfer && donor !== undefined)) throw new EnclaveError('not_found', 'no such call')
    if (call.method !== 'POST') throw new EnclaveError('method_not_allowed', 'use POST')
    // Enclaves don't sign these calls. Their quotes authenticate them, and verifying quotes needs the time. The secret also must not spread
    // before its first enclave can serve: until then an operator may start over with another secret.
    if (isTransfer && donor !== undefined) {
      deps.time.bootedAt()
      return answerJoiner(donor, call)
    }
    const caller = await deps.callers.verify(call)
    const body = parseBody(call.body)
    if (call.path === enclavePaths.attest) {
      const request = parseRequest(attestRequest, body)
      if (request.caller !== undefined) await deps.callers.introduce(caller, request.caller)
      deps.callers.assertAllowed(caller)
      return attest(request)
    }
    deps.callers.assertAllowed(caller)
    const { statementLog } = deps
    if (call.path === enclavePaths.log || call.path === enclavePaths.release) {
      if (statementLog === undefined) throw new EnclaveError('not_found', 'this enclave has no log')
      if (call.path === enclavePaths.log) return statementLog.call(parseRequest(logRequest, body))
      return statementLog.release(parseRequest(releaseRequest, body), caller)
    }
    statementLog?.assertOpen()
    if (call.path === enclavePaths.openSession) return openSession(deps, parseRequest(openSessionRequest, body))
    if (call.path === enclavePaths.vault) return deriveVault(deps, parseRequest(vaultRequest, body))
    return signAll(parseSignItemsRequest(body), caller)
  }

  async function signAll({ items, policies }: ParsedSignItems, coordinatorKey: string) {
    const whole = items.filter((item) => item !== undefined)
    const parameters = { items: whole, policies, coordinatorKey }
    const { statementLog } = deps
    const response = await (statementLog === undefined
      ? signItems(deps, parameters)
      : signLoggedItems({ ...deps, statementLog }, parameters))
    const remaining = [...response.results]
    const all = items.map((item) => (item === undefined ? { error: 'invalid_request' as const } : remaining.shift()))
    return { ...response, results: all }
  }

  /** Rejects unknown callers before reading their bodies, and separates verified callers from those that only name their key. */
  async function admit({ method, path, headers }: CallHead) {
    const isCall = Object.values(enclavePaths).some((one) => one === path)
    if (!isCall || method !== 'POST') return undefined
    return deps.callers.admit({ headers, path, isIntroduction: path === enclavePaths.attest })
  }

  /** Lets coordinators fetch statements that are already signed. */
  async function drain() {
    await deps.batcher.drain()
    const patience = new AbortController()
    const waited = setTimeout(DRAIN_MS, undefined, { signal: patience.signal }).catch(() => undefined)
    await Promise.race([deps.statementLog?.waitUntilEmpty(), waited])
    patience.abort()
  }

  // A coordinator that fetches a statement may first need an attestation.
  const finishing: readonly string[] = [enclavePaths.attest, enclavePaths.log, enclavePaths.release]
  const isFinishing = (path: string) => finishing.includes(path)
  return serveCalls({ dispatch, admit, log: deps.log, drain, isFinishing })
}

function answerJoiner(donor: Donor, { path, body }: Call) {
  return path === rootSecretPaths.challenge
    ? donor.challenge()
    : donor.transfer(parseRequest(transferRequest, parseBody(body)))
}
