import { hash } from 'node:crypto'
import { once } from 'node:events'
import { assertQuotePolicy, PolicyError, QuoteError, type Verifier } from '@countersign/attestation'
import {
  type CallerAttestation,
  callerHeaders,
  computeEnclaveAttestReportData,
  type EnclaveConfig,
  enclavePaths,
  fromHex,
  hashEnclaveConfig,
  isLoopbackUrl,
  ServiceError,
  toCallerMessage,
  toHex,
} from '@countersign/protocol'
import { type Log, readCode } from '@countersign/service'
import { Client, type Dispatcher, Pool } from 'undici'
import type { Clock, Random } from '../../system.ts'
import { createAttestedConnector, KeyChangedError } from './attestedTls.ts'
import type { CollateralStore, PlatformReader } from './collateral/collateralStore.ts'
import type { EnclavePolicy, EnclaveTerms } from './keyEnclave.ts'
import { AnswerError, parseAttestResponse, parseBody, parseErrorCode } from './parseAnswers.ts'
import type { RootSecrets } from './rootSecrets.ts'

type FailureCode =
  /** The request was not sent. */
  | 'unreachable'
  | 'key_changed'
  /** The enclave may have processed the request. */
  | 'cut_off'
  | 'timed_out'
  | 'answer_malformed'
  | 'refused'
  /** The peer is not an enclave that we trust, or could not prove it. */
  | 'not_attested'

/** Why an enclave could not be used for a call. `details` goes to the log. */
export class EndpointError extends ServiceError<FailureCode> {
  override name = 'EndpointError'
}

function toEndpointError(cause: unknown): EndpointError {
  if (cause instanceof AnswerError) return malformed(cause)
  if (cause instanceof KeyChangedError) return failure('key_changed', undefined, cause)
  const code = readCode(cause)
  const name = cause instanceof Error ? cause.name : typeof cause
  if (name === 'TimeoutError' || name === 'AbortError') return failure('timed_out', undefined, cause)
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE') return failure('cut_off', code, cause)
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE' || code?.startsWith('HPE_') || name === 'HTTPParserError') {
    return failure('answer_malformed', code, cause)
  }
  return failure('unreachable', code ?? name, cause)
}

function refused({ status, body }: { status: number; body: unknown }): EndpointError {
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

type AssertGenuineDeps = {
  verifier: Pick<Verifier, 'verifyQuote'>
  collateral: Pick<CollateralStore, 'current'>
  readPlatform: PlatformReader
  policy: EnclavePolicy
  /** True to require quotes under a simulated root, false to reject them. */
  isMock: boolean
  clock: Clock
}

export type EnclaveEndpointDeps = AssertGenuineDeps & {
  /** The coordinator's attested key (hex). It signs every call. */
  caller: { publicKey: string; sign(message: Uint8Array): Uint8Array }
  /** Introduces the coordinator to enclaves that have a caller policy. */
  callerAttestation?: () => CallerAttestation
  /** Shared by all enclaves of this coordinator. */
  rootSecrets: RootSecrets
  random: Random
  log: Log
  /** The limit for one call, including the wait for a free connection. */
  timeoutMs?: number
  /** The limit for a health check, including attestation. The default is 3 s, because scrapes time out after 4 s. */
  checkMs?: number
  /** The most calls in flight. */
  connections?: number
}

/** Facts that an enclave has proven about itself. */
type Attested = EnclaveTerms & { bootId: string; tlsKeyHash: string; at: number; pool: Pool }

/** A call, and how to read its answer. */
export type EnclaveCall<Raw, Result> = {
  path: string
  request: unknown
  parse(body: unknown): Raw
  /** Whether the same enclave may receive the call twice. */
  isRepeatable: boolean
  /** A limit shorter than the usual one. */
  timeoutMs?: number
  /** The boot that answered, if the answer names it. */
  bootIdOf?(raw: Raw): string | undefined
  finish(raw: Raw, attested: EnclaveTerms): Result
}

/** One enclave at one address. */
export type EnclaveEndpoint = {
  origin: string
  /** Whether this is the boot that was attested last. */
  isBoot(bootId: string): boolean
  /** Whether the enclave has answered no call for this long. */
  isSilentFor(ms: number): boolean
  /** Whether the enclave has attested itself and answers now. Also false if the check times out. */
  isUp(): Promise<boolean>
  /** Returns the attested terms. Throws `EndpointError` if there are none. */
  getTerms(): Promise<EnclaveTerms>
  /** Throws `EndpointError` if this enclave can't be used for the call. */
  call<Raw, Result>(call: EnclaveCall<Raw, Result>): Promise<Result>
  /** Resolves when pending calls have been answered. */
  stop(): Promise<void>
}

type Address =
  | { kind: 'http'; origin: string }
  | { kind: 'unix'; origin: string; socketPath: string }
  | { kind: 'https'; origin: string }

type Answer = { status: number; body: unknown }

const NO_TLS = '00'.repeat(32)
const ATTEST_EVERY_MS = 1_800_000
const MAX_RESPONSE_BYTES = 16_777_216
const HEALTH_PATH = '/health'

/**
 * Sends nothing secret to an enclave that has not attested itself. With https, every connection must end in the attested key. The address is
 * `http://` on loopback, `unix:/path`, or `https://` with an attested key.
 */
export function createEnclaveEndpoint(deps: EnclaveEndpointDeps, url: string): EnclaveEndpoint {
  const { caller, rootSecrets, clock, random, log, timeoutMs = 10_000, checkMs = 3_000, connections = 16 } = deps
  const { commitments } = deps.policy
  const address = parseAddress(url)
  const closing = new Set<Promise<unknown>>()
  let attested: Attested | undefined
  let lastBootId: string | undefined
  let attesting: Promise<Attested> | undefined
  /** All its connections end in the key with this hash. */
  let pooled: { tlsKeyHash: string; pool: Pool } | undefined
  /** In the time of `performance.now()`. */
  let answeredAt = 0

  function clientOptions(accept: (keyHash: string) => boolean): Client.Options {
    return {
      pipelining: 1,
      maxResponseSize: MAX_RESPONSE_BYTES,
      allowH2: false,
      ...(address.kind === 'https' ? { connect: createAttestedConnector(accept, { timeoutMs }) } : {}),
      ...(address.kind === 'http' ? { connect: { timeout: timeoutMs } } : {}),
      ...(address.kind === 'unix' ? { connect: { timeout: timeoutMs, socketPath: address.socketPath } } : {}),
    }
  }

  async function post(
    dispatcher: Dispatcher,
    {
      path,
      request,
      timeoutMs: limitMs = timeoutMs,
    }: Pick<EnclaveCall<never, never>, 'path' | 'request' | 'timeoutMs'>,
  ): Promise<Answer> {
    const body = Buffer.from(JSON.stringify(request))
    const timeMs = clock.now()
    const bodyHash = hash('sha256', body, 'buffer')
    const message = toCallerMessage({ path, timeMs, bodyHash })
    const headers = {
      'content-type': 'application/json',
      [callerHeaders.key]: caller.publicKey,
      [callerHeaders.time]: String(timeMs),
      [callerHeaders.signature]: Buffer.from(caller.sign(message)).toString('hex'),
      [callerHeaders.bodyHash]: bodyHash.toString('hex'),
    }
    const signal = AbortSignal.timeout(limitMs)
    try {
      const response = await (dispatcher as Pool).request({ method: 'POST', path, headers, body, signal })
      // Bounded by `maxResponseSize`.
      const bytes = await response.body.bytes()
      answeredAt = performance.now()
      return { status: response.statusCode, body: parseBody(bytes) }
    } catch (cause) {
      throw toEndpointError(cause)
    }
  }

  /** All calls that need an attestation meanwhile share this one. */
  function attestation(): Promise<Attested> {
    const ageMs = attested === undefined ? Number.POSITIVE_INFINITY : Math.abs(clock.now() - attested.at)
    // Attest again with each call while root secrets differ: this enclave or the other may have restarted with the right one.
    const isDisputed = rootSecrets.findOther(url) !== undefined
    if (attested !== undefined && ageMs < ATTEST_EVERY_MS && !isDisputed) return Promise.resolve(attested)
    attesting ??= attest().finally(() => {
      attesting = undefined
    })
    return attesting
  }

  async function attest(): Promise<Attested> {
    const at = clock.now()
    const nonce = random(32)
    const request = {
      nonce: toHex(nonce),
      ...(deps.callerAttestation === undefined ? {} : { caller: deps.callerAttestation() }),
    }
    // Accept any peer on a separate connection for this one request: the quote says which key to expect afterwards.
    let keyHash = NO_TLS
    const accept = (seen: string) => {
      keyHash = seen
      return true
    }
    const client = new Client(address.origin, clientOptions(accept))
    let answer: Answer
    try {
      answer = await post(client, { path: enclavePaths.attest, request })
    } finally {
      await client.destroy()
    }
    if (answer.status !== 200) throw refused(answer)
    const { quote, eventLog, tlsKeyHash, bootId, commitment, ...terms } = parse(() => parseAttestResponse(answer.body))
    const { config } = terms
    if (tlsKeyHash !== keyHash) throw notAttested('the quote is for another TLS key than the connection’s')
    await assertGenuine(deps, { quote: fromHex(quote), eventLog, config, tlsKeyHash, nonce })
    assertRootSecret(commitment)
    log.info({
      msg: 'Attested an enclave',
      enclave: address.origin,
      bootId,
      configHash: toHex(hashEnclaveConfig(config)),
      commitment,
    })
    attested = { ...terms, bootId, tlsKeyHash, at, pool: poolFor(tlsKeyHash) }
    lastBootId = bootId
    return attested
  }

  /** An enclave with another root secret would give users other addresses, with keys that no other enclave has. */
  function assertRootSecret(commitment: string | undefined) {
    if (commitments !== undefined && (commitment === undefined || !commitments.includes(commitment))) {
      throw notAttested(`root secret ${commitment ?? 'unknown'}`)
    }
    rootSecrets.set(url, commitment)
    const other = rootSecrets.findOther(url)
    if (other !== undefined) throw notAttested(`another root secret than ${other}`)
  }

  function poolFor(tlsKeyHash: string): Pool {
    if (pooled?.tlsKeyHash === tlsKeyHash) return pooled.pool
    closePool()
    const options = clientOptions((keyHash) => keyHash === tlsKeyHash)
    const pool = new Pool(address.origin, { ...options, connections })
    pooled = { tlsKeyHash, pool }
    return pool
  }

  /** Pending calls in the pool are answered first. */
  function closePool() {
    if (pooled === undefined) return
    const closed = pooled.pool.close().catch(() => {})
    closing.add(closed)
    void closed.then(() => closing.delete(closed))
  }

  function forget(known: Attested) {
    if (attested === known) attested = undefined
  }

  async function isAnswering(signal: AbortSignal): Promise<boolean> {
    let known: Attested | undefined
    try {
      known = await attestation()
      const { statusCode, body } = await known.pool.request({ method: 'GET', path: HEALTH_PATH, signal })
      // An enclave that still waits for the time answers here, but refuses every call.
      const { status } = JSON.parse(await body.text()) as { status?: unknown }
      return statusCode === 200 && status === 'ok'
    } catch {
      // It may have restarted with another key. The next call attests it again.
      if (known !== undefined) forget(known)
      return false
    }
  }

  return {
    origin: address.origin,
    isBoot: (bootId) => bootId === lastBootId,
    isSilentFor: (ms) => performance.now() - answeredAt >= ms,
    getTerms: attestation,

    async isUp() {
      const signal = AbortSignal.timeout(checkMs)
      const late = once(signal, 'abort').then(() => false)
      return Promise.race([isAnswering(signal), late])
    },

    /** Repeats the call once if the enclave has restarted or no longer knows this caller. */
    async call(call) {
      for (let isRepeated = false; ; isRepeated = true) {
        const known = await attestation()
        rootSecrets.use(url)
        try {
          const answer = await post(known.pool, call)
          if (answer.status !== 200) throw refused(answer)
          const result = parse(() => call.parse(answer.body))
          const bootId = call.bootIdOf?.(result)
          if (bootId === undefined || bootId === known.bootId) return call.finish(result, known)
          // It has restarted, so it must attest itself before its answer may be used.
          forget(known)
          const renewed = await attestation()
          if (bootId === renewed.bootId) return call.finish(result, renewed)
          throw new EndpointError('cut_off', 'the enclave has restarted')
        } catch (error) {
          if (!(error instanceof EndpointError)) throw error
          const isForgotten = error.code === 'refused' && error.details === 'caller_unknown'
          if (error.code === 'refused' && !isForgotten) throw error
          forget(known)
          const isWorthRepeating =
            isForgotten || error.code === 'key_changed' || (error.code === 'cut_off' && call.isRepeatable)
          if (isRepeated || !isWorthRepeating) throw error
        }
      }
    },

    async stop() {
      await Promise.allSettled([attesting])
      closePool()
      await Promise.all(closing)
    },
  }
}

/** Checks that the quote comes from a trusted enclave with these settings, this TLS key and this nonce. Throws `not_attested`. */
async function assertGenuine(
  deps: AssertGenuineDeps,
  answer: {
    quote: Uint8Array<ArrayBuffer>
    eventLog: string | undefined
    config: EnclaveConfig
    tlsKeyHash: string
    nonce: Uint8Array
  },
): Promise<void> {
  const { configHashes, commitments: _, ...quotePolicy } = deps.policy
  const { quote, eventLog, config, tlsKeyHash, nonce } = answer
  const configHash = hashEnclaveConfig(config)
  if (configHashes !== undefined && !configHashes.includes(toHex(configHash))) {
    throw notAttested(`configuration ${toHex(configHash)}`)
  }
  const { collateral } = await deps.collateral.current(deps.readPlatform(quote))
  const reportData = computeEnclaveAttestReportData({ tlsKeyHash: fromHex(tlsKeyHash), nonce, configHash })
  try {
    const verified = await deps.verifier.verifyQuote({
      quote,
      collateral,
      ...(eventLog === undefined ? {} : { eventLog }),
      at: new Date(deps.clock.now()),
    })
    if (verified.root.mode !== (deps.isMock ? 'mock' : 'hardware')) throw notAttested(`a ${verified.root.mode} quote`)
    assertQuotePolicy(verified, { ...quotePolicy, reportData })
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    throw notAttested(cause.code, cause)
  }
}

/** `http://127.0.0.1:8090`, `unix:/path` or `https://host`. Plain HTTP never leaves the machine. */
function parseAddress(text: string): Address {
  if (text.startsWith('unix:/'))
    return { kind: 'unix', origin: 'http://localhost', socketPath: text.slice('unix:'.length) }
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isBare = url !== undefined && url.pathname === '/' && url.search + url.hash + url.username + url.password === ''
  if (isBare && url.protocol === 'https:') return { kind: 'https', origin: url.origin }
  if (isBare && url.protocol === 'http:' && isLoopbackUrl(url)) return { kind: 'http', origin: url.origin }
  throw new TypeError('an enclave’s address is http:// on loopback, unix:/path or https://')
}

function parse<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw cause instanceof AnswerError ? malformed(cause) : cause
  }
}
