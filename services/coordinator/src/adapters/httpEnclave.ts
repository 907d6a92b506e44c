import { hash } from 'node:crypto'
import { assertQuotePolicy, PolicyError, QuoteError, type Verifier } from '@countersign/attestation'
import {
  type CallerAttestation,
  callerHeaders,
  computeEnclaveAttestReportData,
  type EnclaveConfig,
  enclavePaths,
  fromHex,
  hashEnclaveConfig,
  ServiceError,
  toCallerMessage,
  toHex,
} from '@countersign/protocol'
import { Client, type Dispatcher, Pool } from 'undici'
import { platformOf } from '../collateral/platformOf.ts'
import { CoordinatorError } from '../errors.ts'
import type { Log } from '../http/log.ts'
import type { Clock, CollateralStore, KeyEnclave, Random } from '../ports.ts'
import type { EnclavePolicy } from '../sign/checkBatch.ts'
import { askInTurn } from './askInTurn.ts'
import { createAttestedConnector, KeyChangedError } from './attestedTls.ts'
import {
  AnswerError,
  parseAttestResponse,
  parseErrorCode,
  parseJson,
  parseOpenSessionResponse,
  parseSignTransactionsResponse,
} from './httpEnclaveAnswers.ts'

export type HttpEnclaveDeps = {
  /** `http://` on loopback, `unix:/path`, or `https://` with an attested key; the first that answers is used. */
  urls: readonly string[]
  /** The coordinator's attested key (hex), which signs every call. */
  caller: { publicKey: string; sign(message: Uint8Array): Uint8Array }
  /** Introduces the coordinator to enclaves that have a caller policy. */
  callerAttestation?: () => CallerAttestation
  verifier: Pick<Verifier, 'verifyQuote'>
  collateral: Pick<CollateralStore, 'current'>
  policy: EnclavePolicy
  /** Whether quotes must stand under a simulated root, or under none. */
  isMock: boolean
  clock: Clock
  random: Random
  log: Pick<Log, 'info' | 'warn'>
  /** For one call at one enclave, its wait for a free connection included. */
  timeoutMs?: number
  /** Calls in flight at one enclave. */
  connections?: number
  /** How long an enclave may keep silent before another is asked as well. */
  patienceMs?: number
}

/** What an enclave has proven about itself. */
type Attested = { config: EnclaveConfig; bootId: string; tlsKeyHash: string; at: number; pool: Pool }

type Address =
  | { kind: 'http'; origin: string }
  | { kind: 'unix'; origin: string; socketPath: string }
  | { kind: 'https'; origin: string }

type Endpoint = {
  address: Address
  attested: Attested | undefined
  attesting: Promise<Attested> | undefined
  /** Its connections all end in the key of this hash. */
  pool: { tlsKeyHash: string; pool: Pool } | undefined
  /** When it last answered anything, by the clock of `performance`. */
  answeredAt: number
}

type FailureCode =
  /** Nothing was sent. */
  | 'unreachable'
  | 'key_changed'
  /** It may have been processed. */
  | 'cut_off'
  | 'timed_out'
  | 'answer_malformed'
  | 'refused'
  /** It is not, or could not show that it is, the enclave that we trust. */
  | 'not_attested'

/** Why one enclave could not be used for one call; `details` is for the log. */
class EndpointError extends ServiceError<FailureCode> {
  override name = 'EndpointError'
}

type Answer = { status: number; body: unknown }

const NO_TLS = '00'.repeat(32)
const ATTEST_EVERY_MS = 1_800_000
/** How long another enclave than the first is preferred after the first has failed. */
const RETURN_MS = 60_000
const MAX_RESPONSE_BYTES = 16_777_216

/**
 * The key enclave behind one or several addresses. Nothing secret is sent to an enclave that has not attested itself, and, by
 * https, to no connection that ends in another key than the attested one. Calls may be repeated at another enclave, since all
 * share one root secret and sign deterministically.
 */
export function createHttpEnclave(deps: HttpEnclaveDeps): KeyEnclave {
  const { caller, policy, isMock, clock, random, log, timeoutMs = 10_000, connections = 8 } = deps
  const { patienceMs = 500 } = deps
  const { configHashes, ...quotePolicy } = policy
  if (!isMock && (policy.measurements === undefined || configHashes === undefined)) {
    throw new TypeError('measurements and configuration hashes of the enclave are required')
  }
  if (deps.urls.length === 0) throw new TypeError('an enclave’s address is required')
  const endpoints = deps.urls.map(
    (url): Endpoint => ({
      address: parseAddress(url),
      attested: undefined,
      attesting: undefined,
      pool: undefined,
      answeredAt: 0,
    }),
  )
  const closing = new Set<Promise<unknown>>()
  /** Where calls go first, and since when. */
  let preferred = { index: 0, since: 0 }
  let isStopped = false

  function createPool({ address }: Endpoint, tlsKeyHash: string): Pool {
    return new Pool(address.origin, { ...clientOptions(address, (keyHash) => keyHash === tlsKeyHash), connections })
  }

  function clientOptions(address: Address, accept: (keyHash: string) => boolean): Client.Options {
    return {
      pipelining: 1,
      maxResponseSize: MAX_RESPONSE_BYTES,
      allowH2: false,
      ...(address.kind === 'https' ? { connect: createAttestedConnector(accept, { timeoutMs }) } : {}),
      ...(address.kind === 'http' ? { connect: { timeout: timeoutMs } } : {}),
      ...(address.kind === 'unix' ? { connect: { timeout: timeoutMs, socketPath: address.socketPath } } : {}),
    }
  }

  async function post(dispatcher: Dispatcher, path: string, request: unknown): Promise<Answer> {
    const body = Buffer.from(JSON.stringify(request))
    const timeMs = clock.now()
    const message = toCallerMessage({ path, timeMs, bodyHash: hash('sha256', body, 'buffer') })
    const headers = {
      'content-type': 'application/json',
      [callerHeaders.key]: caller.publicKey,
      [callerHeaders.time]: String(timeMs),
      [callerHeaders.signature]: Buffer.from(caller.sign(message)).toString('hex'),
    }
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const response = await (dispatcher as Pool).request({ method: 'POST', path, headers, body, signal })
      return { status: response.statusCode, body: parseJson(await response.body.text()) }
    } catch (cause) {
      throw toEndpointError(cause)
    }
  }

  /** Shared by all the calls that need it meanwhile. */
  function attestation(endpoint: Endpoint): Promise<Attested> {
    const { attested } = endpoint
    const ageMs = attested === undefined ? Number.POSITIVE_INFINITY : Math.abs(clock.now() - attested.at)
    if (attested !== undefined && ageMs < ATTEST_EVERY_MS) return Promise.resolve(attested)
    endpoint.attesting ??= attest(endpoint).finally(() => {
      endpoint.attesting = undefined
    })
    return endpoint.attesting
  }

  async function attest(endpoint: Endpoint): Promise<Attested> {
    const { address } = endpoint
    const at = clock.now()
    const nonce = random(32)
    const request = {
      nonce: toHex(nonce),
      ...(deps.callerAttestation === undefined ? {} : { caller: deps.callerAttestation() }),
    }
    // Whoever answers is asked, once, on a connection of its own: only the quote tells which key to expect afterwards.
    let keyHash = NO_TLS
    const accept = (seen: string) => {
      keyHash = seen
      return true
    }
    const client = new Client(address.origin, clientOptions(address, accept))
    let answer: Answer
    try {
      answer = await post(client, enclavePaths.attest, request)
    } finally {
      await client.destroy()
    }
    endpoint.answeredAt = performance.now()
    if (answer.status !== 200) throw refused(answer)
    const { quote, eventLog, config, tlsKeyHash, bootId } = parse(() => parseAttestResponse(answer.body))
    if (tlsKeyHash !== keyHash) throw notAttested('the quote is for another TLS key than the connection’s')
    await assertGenuine({ quote: fromHex(quote), eventLog, config, tlsKeyHash, nonce })
    const pool = endpoint.pool?.tlsKeyHash === tlsKeyHash ? endpoint.pool.pool : replacePool(endpoint, tlsKeyHash)
    log.info({
      msg: 'Attested an enclave',
      enclave: address.origin,
      bootId,
      configHash: toHex(hashEnclaveConfig(config)),
    })
    endpoint.attested = { config, bootId, tlsKeyHash, at, pool }
    return endpoint.attested
  }

  async function assertGenuine(answer: {
    quote: Uint8Array<ArrayBuffer>
    eventLog: string | undefined
    config: EnclaveConfig
    tlsKeyHash: string
    nonce: Uint8Array
  }) {
    const { quote, eventLog, config, tlsKeyHash, nonce } = answer
    const configHash = hashEnclaveConfig(config)
    if (configHashes !== undefined && !configHashes.includes(toHex(configHash))) {
      throw notAttested(`configuration ${toHex(configHash)}`)
    }
    const { collateral } = await deps.collateral.current(platformOf(quote))
    const reportData = computeEnclaveAttestReportData({ tlsKeyHash: fromHex(tlsKeyHash), nonce, configHash })
    try {
      const verified = await deps.verifier.verifyQuote({
        quote,
        collateral,
        ...(eventLog === undefined ? {} : { eventLog }),
        at: new Date(clock.now()),
      })
      if (verified.root.mode !== (isMock ? 'mock' : 'hardware')) throw notAttested(`a ${verified.root.mode} quote`)
      assertQuotePolicy(verified, { ...quotePolicy, reportData })
    } catch (cause) {
      if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
      throw notAttested(cause.code, cause)
    }
  }

  function replacePool(endpoint: Endpoint, tlsKeyHash: string): Pool {
    if (endpoint.pool !== undefined) close(endpoint.pool.pool)
    const pool = createPool(endpoint, tlsKeyHash)
    endpoint.pool = { tlsKeyHash, pool }
    return pool
  }

  /** Calls under way in it are answered first. */
  function close(pool: Pool) {
    const closed = pool.close().catch(() => {})
    closing.add(closed)
    void closed.then(() => closing.delete(closed))
  }

  function forget(endpoint: Endpoint, attested: Attested) {
    if (endpoint.attested === attested) endpoint.attested = undefined
  }

  /** One call at one enclave; once more where the enclave has started anew, or has forgotten us. */
  async function callAt<Raw, Result>(endpoint: Endpoint, call: Call<Raw, Result>): Promise<Result> {
    for (let isRepeated = false; ; isRepeated = true) {
      const attested = await attestation(endpoint)
      try {
        const answer = await post(attested.pool, call.path, call.request)
        endpoint.answeredAt = performance.now()
        if (answer.status !== 200) throw refused(answer)
        const result = parse(() => call.parse(answer.body))
        const bootId = call.bootIdOf?.(result)
        if (bootId === undefined || bootId === attested.bootId) return call.finish(result, attested)
        // Started anew since: what it is now has to be shown before its answer is used.
        forget(endpoint, attested)
        const renewed = await attestation(endpoint)
        if (bootId === renewed.bootId) return call.finish(result, renewed)
        throw new EndpointError('cut_off', 'the enclave was started anew')
      } catch (error) {
        if (!(error instanceof EndpointError)) throw error
        const isForgotten = error.code === 'refused' && error.details === 'caller_unknown'
        if (error.code === 'refused' && !isForgotten) throw error
        forget(endpoint, attested)
        const isWorthRepeating =
          isForgotten || error.code === 'key_changed' || (error.code === 'cut_off' && call.isRepeatable)
        if (isRepeated || !isWorthRepeating) throw error
      }
    }
  }

  /** At the enclave that answered last, then at the others: when it fails, or as well when it keeps silent. */
  async function call<Raw, Result>(parameters: Call<Raw, Result>): Promise<Result> {
    // Back to the first after a while: whoever listed them in an order meant it, and has spread the load by it.
    const first = performance.now() - preferred.since > RETURN_MS ? 0 : preferred.index
    const order = endpoints.map((_, step) => (first + step) % endpoints.length)
    let staleCollateral: CoordinatorError | undefined
    let useless: { result: Result } | undefined
    let judgement: unknown

    async function askAt(index: number): Promise<{ index: number; result: Result }> {
      if (isStopped) throw new CoordinatorError('shutting_down', 'the coordinator is stopping')
      const endpoint = endpoints[index] as Endpoint
      try {
        const result = await callAt(endpoint, parameters)
        if (!parameters.isUseless?.(result)) return { index, result }
        useless = { result }
        throw failure('refused', 'of no use')
      } catch (error) {
        if (isFinal(error)) throw error
        warn('Could not use an enclave', endpoint, toReason(error))
        if (error instanceof CoordinatorError && error.code === 'collateral_stale') staleCollateral = error
        if (isJudgement(error)) judgement = error
        throw error
      }
    }

    const at = (step: number) => endpoints[order[step] ?? 0] as Endpoint
    const warn = (msg: string, { address }: Endpoint, fields: Record<string, unknown> = {}) =>
      log.warn({ msg, enclave: address.origin, path: parameters.path, ...fields })
    try {
      const answer = await askInTurn(
        order.map((index) => () => askAt(index)),
        {
          patienceMs,
          isSilent: (step) => performance.now() - at(step).answeredAt >= patienceMs,
          isFinal,
          onSilence: (step) => warn('An enclave keeps silent', at(step)),
        },
      )
      if (answer.index !== preferred.index) preferred = { index: answer.index, since: performance.now() }
      return answer.result
    } catch (error) {
      if (isJudgement(error)) judgement = error
      if (judgement !== undefined) {
        throw new CoordinatorError('oauth_exchange_failed', 'the sign-in was not accepted', { cause: judgement })
      }
      if (isFinal(error)) throw error
      if (useless !== undefined) return useless.result
      throw staleCollateral ?? new CoordinatorError('enclave_unavailable', 'no key enclave can be reached')
    }
  }

  return {
    openSession: (request) =>
      call({
        path: enclavePaths.openSession,
        request,
        parse: parseOpenSessionResponse,
        // The enclave takes a token once, so that a second try there would only hide the first failure.
        isRepeatable: false,
        finish: (response) => response,
      }),

    signTransactions: (items) =>
      call({
        path: enclavePaths.signTransactions,
        request: { items },
        parse: (body) => parseSignTransactionsResponse(body, items.length),
        isRepeatable: true,
        bootIdOf: ({ batches }) => batches[0]?.bootId,
        isUseless: ({ results }) =>
          results.every((result) => 'error' in result && result.error === 'quote_unavailable'),
        finish: (response, { config }) => ({ ...response, config }),
      }),

    async stop() {
      isStopped = true
      await Promise.allSettled(endpoints.map(({ attesting }) => attesting))
      for (const { pool } of endpoints) if (pool !== undefined) close(pool.pool)
      await Promise.all(closing)
    },
  }
}

type Call<Raw, Result> = {
  path: string
  request: unknown
  parse(body: unknown): Raw
  /** Whether the same enclave may get it twice. */
  isRepeatable: boolean
  /** Which boot answered, where the answer says so. */
  bootIdOf?(raw: Raw): string | undefined
  finish(raw: Raw, attested: Attested): Result
  /** An answer that another enclave may better. */
  isUseless?(result: Result): boolean
}

/** A judgement on the user's token, which is no fault of the enclave. One that has just started refuses tokens from before. */
function isJudgement(error: unknown): boolean {
  return error instanceof EndpointError && error.code === 'refused' && error.details?.startsWith('id_token_') === true
}

/** Whether no other enclave could do better. */
function isFinal(error: unknown): boolean {
  if (error instanceof CoordinatorError) return error.code === 'shutting_down'
  // One that has been used is not shown to another enclave, which may not know that.
  if (error instanceof EndpointError) return error.details === 'id_token_replayed'
  return !(error instanceof ServiceError)
}

/** `http://127.0.0.1:8090`, `unix:/path` or `https://host`. Plain HTTP never leaves the machine. */
function parseAddress(text: string): Address {
  if (text.startsWith('unix:/'))
    return { kind: 'unix', origin: 'http://localhost', socketPath: text.slice('unix:'.length) }
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isBare = url !== undefined && url.pathname === '/' && url.search + url.hash + url.username + url.password === ''
  if (isBare && url.protocol === 'https:') return { kind: 'https', origin: url.origin }
  const isLoopback = ['127.0.0.1', '[::1]', 'localhost'].includes(url?.hostname ?? '')
  if (isBare && url.protocol === 'http:' && isLoopback) return { kind: 'http', origin: url.origin }
  throw new TypeError('an enclave’s address is http:// on loopback, unix:/path or https://')
}

function toEndpointError(cause: unknown): EndpointError {
  if (cause instanceof AnswerError) return malformed(cause)
  if (cause instanceof KeyChangedError) return failure('key_changed', undefined, cause)
  const { code, name } = toErrorNames(cause)
  if (name === 'TimeoutError' || name === 'AbortError') return failure('timed_out', undefined, cause)
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE') return failure('cut_off', code, cause)
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE' || code?.startsWith('HPE_') || name === 'HTTPParserError') {
    return failure('answer_malformed', code, cause)
  }
  return failure('unreachable', code ?? name, cause)
}

function toErrorNames(error: unknown): { code: string | undefined; name: string } {
  if (!(error instanceof Error)) return { code: undefined, name: typeof error }
  const { code } = error as NodeJS.ErrnoException
  return { code: typeof code === 'string' ? code : undefined, name: error.name }
}

function parse<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw cause instanceof AnswerError ? malformed(cause) : cause
  }
}

function refused({ status, body }: Answer): EndpointError {
  return failure('refused', parseErrorCode(body) ?? `status ${status}`)
}

function malformed(cause: AnswerError): EndpointError {
  return failure('answer_malformed', cause.message, cause)
}

function notAttested(details: string, cause?: unknown): EndpointError {
  return failure('not_attested', details, cause)
}

function failure(code: FailureCode, details?: string, cause?: unknown): EndpointError {
  return new EndpointError(code, 'the enclave cannot be used', { ...(details === undefined ? {} : { details }), cause })
}

/** Codes and our own words only: other messages could hold anything. */
function toReason(error: unknown): { code: string; reason?: string } {
  if (!(error instanceof ServiceError)) return { code: error instanceof Error ? error.name : typeof error }
  return error.details === undefined ? { code: error.code } : { code: error.code, reason: error.details }
}
