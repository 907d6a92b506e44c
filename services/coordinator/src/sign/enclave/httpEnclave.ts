import {
  enclavePaths,
  openSessionResponse,
  ServiceError,
  type SignItemError,
  vaultResponse,
} from '@countersign/protocol'
import { budgetUnavailable, CoordinatorError, type CoordinatorErrorCode } from '../../errors.ts'
import { toReason } from '../../toReason.ts'
import {
  createEnclaveEndpoint,
  type EnclaveCall,
  type EnclaveEndpoint,
  type EnclaveEndpointDeps,
  EndpointError,
} from './enclaveEndpoint.ts'
import { createEndpointLoads } from './endpointLoads.ts'
import type { KeyEnclave } from './keyEnclave.ts'
import { createLogCalls, logUnavailable } from './logCalls.ts'
import { parseAnswer, parseSignItemsResponse } from './parseAnswers.ts'
import { createRootSecrets } from './rootSecrets.ts'

export type HttpEnclaveDeps = Omit<EnclaveEndpointDeps, 'rootSecrets'> & {
  /** All of them are used. With little load, only the first ones are. */
  urls: readonly string[]
  /** How long to wait for an enclave before asking another one as well. */
  patienceMs?: number
}

/** An enclave's log may open, or its witnesses may catch up, at any moment. */
const LOG_RETURN_MS = 1_000

/**
 * Calls the enclaves at one or several addresses. A call may be repeated at another enclave: all have the same root secret, which is checked,
 * and sign deterministically.
 */
export function createHttpEnclave(deps: HttpEnclaveDeps): KeyEnclave {
  const { policy, log, patienceMs = 500 } = deps
  if (!deps.isMock && (policy.measurements === undefined || policy.configHashes === undefined)) {
    throw new TypeError('measurements and configuration hashes of the enclave are required')
  }
  if (deps.urls.length === 0) throw new TypeError('an enclave’s address is required')
  const rootSecrets = createRootSecrets(log)
  const endpoints = deps.urls.map((url) => createEnclaveEndpoint({ ...deps, rootSecrets }, url))
  const loads = createEndpointLoads(endpoints.length)
  let isStopped = false

  /** Asks the enclave whose quote is expected first. If it fails or times out, asks the others too. */
  async function ask<Result>(question: Question<Result>): Promise<Result> {
    const { path, items = 0, isUnusable, onAnswer, at: askOne, only } = question
    const order = only === undefined ? loads.order() : [only]
    const silent = new Set<number>()
    let staleCollateral: CoordinatorError | undefined
    let unusable: { result: Result } | undefined
    let rejection: unknown
    const refusals = new Set<string>()

    async function askAt(index: number): Promise<{ index: number; result: Result }> {
      if (isStopped) throw new CoordinatorError('shutting_down', 'the coordinator is stopping')
      const endpoint = endpoints[index] as EnclaveEndpoint
      try {
        const result = await loads.run(index, items, async (beganAt) => {
          const answer = await askOne(endpoint)
          onAnswer?.(answer, { index, beganAt })
          if (!isUnusable?.(answer)) return answer
          unusable = { result: answer }
          throw new EndpointError('refused', 'the enclave cannot be used', { details: 'no usable result' })
        })
        return { index, result }
      } catch (error) {
        if (isFinal(error)) throw error
        const refusal = toRefusal(error)
        warn('Could not use an enclave', endpoint, toReason(error))
        if (error instanceof CoordinatorError && error.code === 'collateral_stale') staleCollateral = error
        if (isTokenRejection(error)) rejection = error
        else loads.avoid(index, refusal === 'log_unavailable' ? LOG_RETURN_MS : undefined)
        if (refusal !== undefined) refusals.add(refusal)
        throw error
      }
    }

    const at = (step: number) => endpoints[order[step] ?? 0] as EnclaveEndpoint
    const warn = (msg: string, { origin }: EnclaveEndpoint, fields: Record<string, unknown> = {}) =>
      log.warn({ msg, enclave: origin, path, ...fields })
    try {
      const answer = await askInTurn(
        order.map((index) => () => askAt(index)),
        {
          patienceMs,
          isSilent: (step) => at(step).isSilentFor(patienceMs),
          isFinal,
          onSilence(step) {
            warn('An enclave does not respond', at(step))
            silent.add(order[step] ?? 0)
          },
        },
      )
      for (const index of silent) if (index !== answer.index) loads.avoid(index)
      return answer.result
    } catch (error) {
      if (isTokenRejection(error)) rejection = error
      if (rejection !== undefined) {
        throw new CoordinatorError('oauth_exchange_failed', 'the sign-in was not accepted', { cause: rejection })
      }
      if (isFinal(error)) throw error
      if (unusable !== undefined) return unusable.result
      if (staleCollateral !== undefined) throw staleCollateral
      if (refusals.has('issuer_unavailable')) throw issuerUnavailable()
      // The enclave signs nothing until witnesses have seen its log, or while too many statements wait for them.
      if (refusals.has('log_unavailable')) throw logUnavailable()
      throw new CoordinatorError('enclave_unavailable', 'no enclave is reachable')
    }
  }

  const call = <Raw, Result>(parameters: EnclaveCall<Raw, Result>) =>
    ask({ path: parameters.path, at: (endpoint) => endpoint.call(parameters) })

  const logCalls = createLogCalls({ endpoints, log, isStopped: () => isStopped })
  const findBoot = (bootId: string) => endpoints.findIndex((endpoint) => endpoint.isBoot(bootId))

  return {
    getTerms: () => ask({ path: enclavePaths.attest, at: (endpoint) => endpoint.getTerms() }),

    openSession: (request) =>
      call({
        path: enclavePaths.openSession,
        request,
        parse: (body) => parseAnswer(openSessionResponse, body),
        // The enclave accepts a token only once. A second attempt would hide the first failure.
        isRepeatable: false,
        finish: (response) => response,
      }).catch((error: unknown) => {
        throw toSharedError(error) ?? error
      }),

    deriveVault: (request) =>
      call({
        path: enclavePaths.vault,
        request,
        parse: (body) => parseAnswer(vaultResponse, body),
        isRepeatable: true,
        finish: (response) => response,
      }).catch((error: unknown) => {
        throw toSharedError(error) ?? error
      }),

    async signItems(items, policies, bootId) {
      const only = bootId === undefined ? undefined : findBoot(bootId)
      if (only === -1) throw budgetUnavailable('the enclave that counts has restarted')
      return ask({
        path: enclavePaths.sign,
        items: items.length,
        only,
        isUnusable: ({ results }) => results.every((result) => 'error' in result && OWN_FAULTS.has(result.error)),
        onAnswer: (answer, { index, beganAt }) => loads.observe(index, beganAt, answer),
        at: (endpoint) =>
          endpoint.call({
            path: enclavePaths.sign,
            request: { items, ...(policies && { policies }) },
            parse: (body) => parseSignItemsResponse(body, items.length),
            isRepeatable: true,
            bootIdOf: ({ batches }) => batches[0]?.bootId,
            finish(response, { config, settings, logs }) {
              // Without this check, an enclave could release unwitnessed statements or contradict its attestation.
              const isLogged = 'log' in response
              const isOwn = !isLogged || response.log === null || logs?.own.includes(response.log.origin) === true
              if (isLogged !== (settings.log !== null) || !isOwn) throw notOfItsTerms()
              return { ...response, config, settings, ...(logs && { logs }) }
            },
          }),
      })
    },

    countSlots: loads.countSlots,

    avoid(bootId) {
      const index = findBoot(bootId)
      if (index >= 0) loads.avoid(index)
    },

    async release(request) {
      const response = await logCalls.release(request)
      const index = findBoot(request.bootId)
      if (index >= 0) loads.observeRelease(index, request.leaves)
      return response
    },

    logs: logCalls.logs,

    check: () =>
      Promise.all(endpoints.map(async (endpoint) => ({ address: endpoint.origin, isUp: await endpoint.isUp() }))),

    async stop() {
      isStopped = true
      await Promise.all(endpoints.map((endpoint) => endpoint.stop()))
    },
  }
}

function notOfItsTerms(): EndpointError {
  return new EndpointError('answer_malformed', 'the enclave cannot be used', { details: 'not in its settings' })
}

/** Faults of one enclave that another may not have. */
const OWN_FAULTS: ReadonlySet<SignItemError['error']> = new Set(['quote_unavailable', 'entropy_memory_full'])

type Question<Result> = {
  /** For log messages. */
  path: string
  /** How many items wait for a quote. */
  items?: number
  /** The index of the endpoint to ask, and no other. */
  only?: number | undefined
  at(endpoint: EnclaveEndpoint): Promise<Result>
  /** Also called for answers that come too late. */
  onAnswer?(result: Result, call: { index: number; beganAt: number }): void
  /** Returns true if another enclave may have a better answer. */
  isUnusable?: ((result: Result) => boolean) | undefined
}

/** The enclave's own code. */
const toRefusal = (error: unknown) =>
  error instanceof EndpointError && error.code === 'refused' ? error.details : undefined

/** A rejection of the user's token, which is not the enclave's fault. An enclave that has just started rejects older tokens. */
const isTokenRejection = (error: unknown) => toRefusal(error)?.startsWith('id_token_') === true

function issuerUnavailable(): CoordinatorError {
  const details = 'no enclave can fetch the keys of the provider'
  return new CoordinatorError('provider_unavailable', 'the provider is unreachable', { details })
}

/** Rejections of a sign-in, session or policy. Every enclave would reject it. */
const SHARED_ERRORS: Readonly<Record<string, CoordinatorErrorCode>> = {
  invalid_policy: 'invalid_policy',
  policy_not_supported: 'invalid_policy',
  grant_invalid: 'grant_invalid',
  session_expired: 'session_expired',
  session_not_bound: 'session_not_bound',
}

function toSharedError(error: unknown): CoordinatorError | undefined {
  const refusal = toRefusal(error)
  const code = refusal !== undefined && Object.hasOwn(SHARED_ERRORS, refusal) ? SHARED_ERRORS[refusal] : undefined
  return code && new CoordinatorError(code, 'the enclave refused the request', { details: refusal })
}

/** Whether every other enclave would fail in the same way. */
function isFinal(error: unknown): boolean {
  if (error instanceof CoordinatorError) return error.code === 'shutting_down'
  // Don't try a used token at another enclave, which may not know that it was used.
  if (error instanceof EndpointError) return error.details === 'id_token_replayed' || toSharedError(error) !== undefined
  return !(error instanceof ServiceError)
}

type AskInTurnOptions = {
  /** How long to wait for one before asking the next as well. */
  patienceMs: number
  /** Whether an endpoint has answered no call for that long. One that is only slow gets more time. Unset: all count as silent. */
  isSilent?(index: number): boolean
  /** Whether all others would fail in the same way. */
  isFinal(error: unknown): boolean
  /** Called when one is asked because the earlier ones are silent. */
  onSilence?(index: number): void
}

/**
 * Asks one after the other: the next one when one fails or times out. The first answer counts and later ones are ignored. A frozen process
 * still accepts connections, so waiting for an error would take too long.
 */
export function askInTurn<Answer>(
  asks: readonly ((index: number) => Promise<Answer>)[],
  { patienceMs, isSilent = () => true, isFinal, onSilence }: AskInTurnOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let next = 0
    let underWay = 0
    let isSettled = false
    let timer: NodeJS.Timeout | undefined

    function finish(how: () => void) {
      isSettled = true
      clearTimeout(timer)
      how()
    }

    function waitFor(index: number) {
      timer = setTimeout(() => {
        if (!isSilent(index)) return waitFor(index)
        onSilence?.(index)
        askNext()
      }, patienceMs)
    }

    function askNext() {
      clearTimeout(timer)
      const index = next
      const ask = asks[index]
      if (isSettled || ask === undefined) return
      next += 1
      underWay += 1
      if (next < asks.length) waitFor(index)
      ask(index).then(
        (answer) => finish(() => resolve(answer)),
        (error: unknown) => {
          underWay -= 1
          if (isFinal(error) || (underWay === 0 && next === asks.length)) finish(() => reject(error))
          else askNext()
        },
      )
    }

    askNext()
  })
}
