import type { WitnessPolicy } from '@countersign/log'
import {
  type AnyWitness,
  type Authorization,
  assertAuthorizationAllowed,
  isOffChain,
  type OpenBatch,
  type Placed,
  ServiceError,
  type SignedBatch,
  type SignedStatement,
  type SignItemError,
  type SignItemResult,
} from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { budgetUnavailable, CoordinatorError, invalidAnswer, toPublicCode } from '../errors.ts'
import { createGatherer } from '../store/gather.ts'
import type { Clock } from '../system.ts'
import type { BatchVerifier, VerifiedBatch } from './checkBatch.ts'
import { assertItemSigned, assertSignedAt } from './checkItem.ts'
import type { SignatureChecker } from './checkSignatures.ts'
import type { CommitJob, Committed } from './commit.ts'
import { toSignItem } from './contents.ts'
import type { SelfReport } from './enclave/health/selfReport.ts'
import type { EnclaveTerms, KeyEnclave } from './enclave/keyEnclave.ts'
import type { Entropy } from './entropy/readAhead.ts'
import { type BatchLeaf, countBytes, type SignCall, type SignJob, type SignProgress, type SignResult } from './job.ts'
import { type Failure, type LogStep, logUnavailable, NotReleased, type SignLog } from './signLog.ts'
import { toItemError } from './vaultRules.ts'

/** Signing metrics for operators. */
export type SigningMetrics = {
  /** The number of items in one call to the enclave. */
  observeBatch(size: number): void
  /** The duration of a request for a signature, by outcome. */
  observeSigning(code: string, seconds: number): void
}

export type SignDeps = {
  entropy: Pick<Entropy, 'take' | 'takeVerified' | 'refuse'>
  enclave: Pick<KeyEnclave, 'signItems'>
  selfReport: Pick<SelfReport, 'publicKey'>
  clock: Clock
  verifyBatch: BatchVerifier
  signatures: Pick<SignatureChecker, 'check'>
  commit(job: CommitJob): Promise<Committed>
  /** The version of transaction receipts. All other kinds have receipts of version 2. */
  receiptVersion: 1 | 2
  /** For enclaves with a log. */
  signLog?: SignLog | undefined
  log: Pick<Log, 'warn'>
}

export type BatchSignerDeps = SignDeps & {
  enclave: Pick<KeyEnclave, 'getTerms' | 'countSlots'>
  metrics: SigningMetrics
  /** The most requests in one batch. */
  batchLimit: number
}

export type BatchSigner = {
  sign(job: SignJob): Promise<SignResult>
  /** Rejects new requests with `shutting_down`. Resolves when the pending ones have been answered. */
  stop(): Promise<void>
}

/** The enclave's limit for one call, minus the envelope around the items. */
const MAX_CALL_BYTES = 3_500_000

/** Signs all kinds of requests in batches, and measures batches and requests. */
export function createBatchSigner(deps: BatchSignerDeps): BatchSigner {
  const { metrics } = deps
  const gatherer = createGatherer<SignJob, SignResult>({
    run(jobs, progress) {
      metrics.observeBatch(jobs.length)
      return signJobs(deps, jobs, progress)
    },
    // Requests share a job only if caller, rule and approvals are equal: an opening belongs to one caller.
    keyOf: ({ walletId, vault, content }) =>
      isOffChain(content) ? undefined : JSON.stringify([walletId, content.digest, vault?.rule, vault?.approvals]),
    limit: deps.batchLimit,
    // The enclave rejects a call that is too large. Without this limit, one large request would fail all others in its call.
    weight: { of: countBytes, limit: MAX_CALL_BYTES },
    slots: deps.enclave.countSlots,
  })
  return {
    async sign(job) {
      const startedAt = performance.now()
      let code = 'ok'
      try {
        const { content } = job
        if (content.kind === 'authorization') await assertAllowed(deps.enclave, content.authorization)
        return await gatherer.add(job)
      } catch (error) {
        code = toPublicCode(error)
        throw error
      } finally {
        metrics.observeSigning(code, (performance.now() - startedAt) / 1000)
      }
    },
    async stop() {
      await gatherer.stop(new CoordinatorError('shutting_down', 'the service is stopping'))
      await deps.signLog?.stop()
    },
  }
}

/** Checks the policy early. The enclave checks it too, but a rejection there costs a sample. */
async function assertAllowed(enclave: Pick<KeyEnclave, 'getTerms'>, authorization: Authorization): Promise<void> {
  const { settings } = await enclave.getTerms()
  try {
    assertAuthorizationAllowed(authorization, settings.implementations)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new CoordinatorError('authorization_not_allowed', error.message, { details: error.details })
  }
}

/** The number of signatures checked together. The coordinator stores one part while it checks the next. */
const PART = 32

/**
 * `POST /sign/digest` and the other signing routes, for the jobs of one batch. The numbers are the steps of the specification; step 1,
 * finding the signer, is `findSigner`. With a log, decision 23 gives the order: while the enclave makes the quote, the coordinator writes
 * entries and claims, and witnesses cosign; then the enclave releases the statements. If a job fails before that, the enclave drops its
 * statement and never releases it.
 */
export async function signJobs(deps: SignDeps, jobs: readonly SignJob[], progress: SignProgress): Promise<void> {
  const groups = Map.groupBy(jobs, findOrigin)
  await Promise.all(
    [...groups.values()].map(async (group) => {
      try {
        findWriter(deps, group)
        const samples = await deps.entropy.take(group.length) // 2
        await callEnclave(deps, addSamples(deps, group, { samples, progress }), progress)
      } catch (reason) {
        for (const job of group) progress.answer(job, failed(reason))
      }
    }),
  )
}

/** The log that counts a payment from budgets, or a revocation. Other jobs may go to any enclave. */
function findOrigin({ vault, content }: SignJob): string | undefined {
  const { rules, rule = -1 } = vault ?? {}
  const isCounted = content.kind === 'revocation' || rules?.rules[rule]?.kind === 'spend'
  return isCounted ? rules?.log?.origin : undefined
}

/** The boot that must sign jobs of the same log. Undefined if any may. Throws `budget_unavailable`. */
function findWriter({ signLog }: SignDeps, [job]: readonly SignJob[]): string | undefined {
  const origin = job && findOrigin(job)
  if (origin === undefined) return undefined
  const bootId = signLog?.findBoot(origin)
  if (bootId === undefined) throw budgetUnavailable('the log of the budgets is not open')
  return bootId
}

type SampledJob = SignJob<'sample' | 'item'>

function addSamples(
  { receiptVersion }: SignDeps,
  jobs: readonly SignJob[],
  { samples, progress }: { samples: readonly AnyWitness[]; progress: SignProgress },
): SampledJob[] {
  const sampled: SampledJob[] = []
  for (const [index, job] of jobs.entries()) {
    const sample = samples[index]
    if (sample === undefined) {
      const reason = new CoordinatorError('entropy_unavailable', 'no entropy sample is available')
      progress.answer(job, failed(reason))
    } else sampled.push(Object.assign(job, { sample, item: toSignItem(job, { sample, receiptVersion }) }))
  }
  return sampled
}

/** What the enclave rejected or lacked. The job is sent again with it. */
type Refusal = 'policy' | 'sample' | 'time'
/** Why a job is sent again. Each reason counts once. */
type Retry = Refusal | 'release'

/**
 * Calls the enclave, and calls again for jobs that can still be signed: with the text of a policy that the enclave does not know, with a verified
 * sample if it refused the first one, after it has seen recent cosignatures if it needs their time, or with another sample if the enclave was
 * gone before the release or its quote failed.
 */
async function callEnclave(
  deps: SignDeps,
  jobs: readonly SampledJob[],
  progress: SignProgress,
  tried: readonly Retry[] = [],
): Promise<void> {
  const beganAt = deps.clock.now()
  const items = jobs.map(({ item }) => item)
  const texts = jobs.flatMap(({ vault }) => vault?.policy.text ?? [])
  const policies = tried.includes('policy') ? [...new Set(texts)] : undefined
  const { batches, results, ...rest } = await deps.enclave.signItems(items, policies, findWriter(deps, jobs)) // 3
  const call = { coordinatorKey: deps.selfReport.publicKey, beganAt, endedAt: deps.clock.now() }
  const again: Record<Refusal, SampledJob[]> = { policy: [], sample: [], time: [] }
  const signed: EnclaveJob[] = []
  for (const [index, job] of jobs.entries()) {
    const why = findRetry(deps, results[index])
    if (why !== undefined && !tried.includes(why)) {
      again[why].push(job)
      continue
    }
    try {
      signed.push(Object.assign(job, { leaf: readLeaf(results[index], { job, batches, call }) }))
    } catch (reason) {
      progress.answer(job, failed(reason))
    }
  }
  await Promise.all([
    finish(deps, rest, signed, { ...progress, tried }),
    ...(['policy', 'sample'] as const).map((why) => callAgain(deps, again[why], progress, { why, tried })),
    ...groupByNeed(again.time).map((group) => callAgain(deps, group, progress, { why: 'time', tried })),
  ])
}

async function callAgain(
  deps: SignDeps,
  jobs: readonly SampledJob[],
  progress: SignProgress,
  { why, tried }: { why: Retry; tried: readonly Retry[] },
): Promise<void> {
  if (jobs.length === 0) return
  try {
    let again = jobs
    if (why === 'time') await renewTime(deps, jobs, progress)
    if (why === 'sample') deps.entropy.refuse?.(jobs.map(({ sample }) => sample))
    if (why !== 'policy') {
      const samples = await (why === 'sample' ? deps.entropy.takeVerified(jobs.length) : deps.entropy.take(jobs.length))
      again = addSamples(deps, jobs, { samples, progress })
    }
    await callEnclave(deps, again, progress, [...tried, why])
  } catch (reason) {
    for (const job of jobs) progress.answer(job, failed(reason))
  }
}

/** Jobs of one policy need the time of its witnesses. Others don't wait for it. */
async function renewTime(deps: SignDeps, jobs: readonly SignJob[], { onSent }: SignProgress): Promise<void> {
  const bootId = findWriter(deps, jobs)
  const [need] = jobs.flatMap((job) => needOf(job) ?? [])
  if (bootId === undefined || need?.origin === undefined) throw invalidAnswer('budget_time')
  onSent()
  try {
    await deps.signLog?.renewTime({ bootId, origin: need.origin, need })
  } catch (cause) {
    throw new CoordinatorError('budget_time', 'the witnesses’ time is unknown', { cause })
  }
}

type EnclaveJob = SignJob<'sample' | 'item' | 'leaf'>
type TimedJob = EnclaveJob & SignJob<'time' | 'log'>

type SignResponse = Awaited<ReturnType<KeyEnclave['signItems']>>
type Terms = EnclaveTerms | (EnclaveTerms & Pick<Extract<SignResponse, { log: unknown }>, 'log'>)

function readLeaf(
  result: SignItemResult | SignItemError | Placed | undefined,
  { job, batches, call }: { job: SignJob; batches: readonly (OpenBatch | SignedBatch)[]; call: SignCall },
): BatchLeaf {
  if (result === undefined) throw new CoordinatorError('internal', 'a result is missing')
  if ('error' in result) throw toItemError(result, job)
  const { batch: number, leafIndex: index, ...rest } = result
  const batch = batches[number]
  if (batch === undefined) throw invalidAnswer()
  const statement = 'statement' in rest ? rest : undefined
  return { batch, index, hash: batch.leaves[index] ?? '', statement, call }
}

/** Everything needed to process one answer of an enclave. */
type Run = SignDeps & Progress & { terms: EnclaveTerms; step: LogStep | undefined }
type Progress = SignProgress & { tried: readonly Retry[] }

async function finish(deps: SignDeps, terms: Terms, jobs: readonly EnclaveJob[], progress: Progress) {
  const { answer } = progress
  const [first] = jobs
  if (first === undefined) return
  const { bootId } = first.leaf.batch
  let step: LogStep | undefined
  try {
    step = beginLogStep(deps, terms, { bootId, progress })
  } catch (reason) {
    for (const job of jobs) answer(job, failed(reason))
    return
  }
  const run: Run = { ...deps, ...progress, terms, step }
  try {
    const [timed, failures] = attempt(jobs, (job) => Object.assign(job, readTime(job, step)))
    await Promise.all([fail(run, failures), timed.length > 0 && finishTimed(run, timed)])
  } finally {
    step?.end()
  }
}

function beginLogStep(
  { signLog, log }: SignDeps,
  terms: Terms,
  { bootId, progress }: { bootId: string; progress: SignProgress },
): LogStep | undefined {
  if (!('log' in terms)) return undefined
  if (signLog === undefined) {
    const msg = 'Rejected signatures of an enclave with a log, because LOG_WITNESSES is not set'
    log.warn({ msg, bootId })
    throw logUnavailable('no witnesses are set')
  }
  if (terms.log === null) throw invalidAnswer('no log')
  return signLog.begin({ appended: terms.log, bootId }, progress)
}

/** Runs before the release: a released statement can't be dropped, so a job that fails later leaves an entry without a receipt. */
function readTime(job: EnclaveJob, step: LogStep | undefined) {
  const entry = step?.findEntry(job)
  const signedAtMs = entry?.timeMs ?? Date.parse(job.leaf.statement?.statement.signedAt ?? '')
  assertSignedAt(signedAtMs, job)
  return { time: { signedAtMs, entryIndex: entry?.index }, log: undefined }
}

async function finishTimed(run: Run, jobs: readonly TimedJob[]): Promise<void> {
  const { step } = run
  let owned = jobs
  let lost: readonly TimedJob[] = []
  try {
    step?.getLogKey(run.terms)
    if (step !== undefined) ({ owned, lost } = await step.record(jobs, run.terms))
  } catch (reason) {
    return fail(run, toFailures(jobs, reason))
  }
  // The remaining jobs wait only for other requests.
  if (owned.length === 0) run.onSent()
  await Promise.all([
    ...lost.map((job) => step?.answerWinner(job)),
    ...groupJobs(owned).map((group) => finishGroup(run, group)),
  ])
}

type Group = { batch: OpenBatch | SignedBatch; need: WitnessPolicy | undefined; jobs: readonly TimedJob[] }

/** Groups jobs by batch and by the witnesses that a vault's rules require. Missing witnesses of one vault delay no other vault. */
function groupJobs(jobs: readonly TimedJob[]): Group[] {
  return [...Map.groupBy(jobs, ({ leaf }) => leaf.batch)].flatMap(([batch, ofBatch]) =>
    groupByNeed(ofBatch).map((group) => ({ batch, need: group[0] && needOf(group[0]), jobs: group })),
  )
}

const needOf = ({ vault }: SignJob) => vault?.rules.log ?? undefined

function groupByNeed<Job extends SignJob>(jobs: readonly Job[]): Job[][] {
  return [...Map.groupBy(jobs, (job) => JSON.stringify(needOf(job))).values()]
}

/** Finishes the jobs that share a quote and, with a log, a cosigned note. One call releases all their statements. */
async function finishGroup(run: Run, { batch, need, jobs }: Group): Promise<void> {
  const { step } = run
  let statements: readonly (SignedStatement | null | undefined)[]
  let verified: Promise<VerifiedBatch>
  try {
    // Let the next batch gather now. The witnesses that a vault has chosen may be missing, and others should not wait for them.
    if (need !== undefined) run.onSent()
    const released = await step?.release(jobs, { batch, need })
    run.onSent()
    statements = released?.statements ?? jobs.map(({ leaf }) => leaf.statement)
    verified = startVerifying(run, released?.batch ?? batch, jobs) // 4
  } catch (reason) {
    if (!(reason instanceof NotReleased) || run.tried.includes('release')) return fail(run, toFailures(jobs, reason))
    await step?.drop(jobs)
    return callAgain(run, jobs, run, { why: 'release', tried: run.tried })
  }
  const [checked, failures] = attempt(jobs, (job, index) =>
    Object.assign(job, { checked: checkStatement(job, statements[index]) }),
  )
  const parts: Promise<Failure[]>[] = []
  for (let start = 0; start < checked.length; start += PART) {
    parts.push(storePart(run, verified, checked.slice(start, start + PART)))
  }
  failures.push(...(await Promise.all(parts)).flat())
  await fail(run, failures)
}

function startVerifying(
  { step, terms, verifyBatch }: Run,
  batch: OpenBatch | SignedBatch,
  jobs: readonly TimedJob[],
): Promise<VerifiedBatch> {
  if (!('quote' in batch)) throw invalidAnswer('the batch has no quote')
  const times = jobs.map(({ time }) => time.signedAtMs)
  const at = { first: Math.min(...times), last: Math.max(...times) }
  const isReleased = jobs.some(({ item }) => item.kind !== 'transaction' || item.statementVersion === 2)
  const verifying = verifyBatch(batch, terms, { at, isReleased, logKey: step?.getLogKey(terms) })
  // Each part of the group sees the rejection when it awaits `verifying`. A group may have no parts.
  verifying.catch(() => {})
  return verifying
}

function checkStatement(job: TimedJob, statement: SignedStatement | null | undefined) {
  if (statement === null) throw logUnavailable('the statement was erased')
  if (statement === undefined) throw invalidAnswer()
  return assertItemSigned(job, statement)
}

/** Steps 4 to 6. Returns the jobs that are not stored. */
async function storePart(
  { signatures, commit, step, answer }: Run,
  verified: Promise<VerifiedBatch>,
  jobs: readonly (TimedJob & SignJob<'checked'>)[],
): Promise<Failure[]> {
  const claims = jobs.flatMap(({ checked }) => checked.claim ?? [])
  const [ready] = await Promise.allSettled([Promise.all([verified, signatures.check(claims)])])
  if (ready.status === 'rejected') return toFailures(jobs, ready.reason)
  const [batch, isGood] = ready.value
  const failures: Failure[] = []
  await Promise.all(
    jobs.map(async (job) => {
      const { claim, opening } = job.checked
      try {
        if (claim !== undefined && isGood[claims.indexOf(claim)] !== true) {
          throw new CoordinatorError('signature_invalid', 'the enclave’s signature is not of this wallet')
        }
        const { signature, slug, isNew } = await commit(Object.assign(job, { verified: batch })) // 5
        if (isNew) step?.acknowledge(job)
        // The database doesn't store this signature; it goes from the enclave straight to the caller.
        const value = { signature: signature ?? claim?.signature ?? null, slug, ...(opening && { opening }) }
        answer(job, { status: 'fulfilled', value }) // 6
      } catch (reason) {
        failures.push({ job, reason })
      }
    }),
  )
  return failures
}

/** Returns the jobs that pass a step. A job that throws fails by itself. */
function attempt<Job extends EnclaveJob, Passed>(
  jobs: readonly Job[],
  step: (job: Job, index: number) => Passed,
): [Passed[], Failure[]] {
  const passed: Passed[] = []
  const failures: Failure[] = []
  for (const [index, job] of jobs.entries()) {
    try {
      passed.push(step(job, index))
    } catch (reason) {
      failures.push({ job, reason })
    }
  }
  return [passed, failures]
}

/** With a log, the enclave drops the statements first. Callers may retry only after that. */
async function fail({ step, answer }: Run, failures: readonly Failure[]): Promise<void> {
  if (failures.length === 0) return
  await step?.drop(failures.map(({ job }) => job))
  for (const { job, reason } of failures) answer(job, failed(reason))
}

const toFailures = (jobs: readonly EnclaveJob[], reason: unknown): Failure[] => jobs.map((job) => ({ job, reason }))

function findRetry({ entropy }: SignDeps, result: SignItemResult | Placed | undefined): Refusal | undefined {
  if (result === undefined || !('error' in result)) return undefined
  if (result.error === 'policy_unknown') return 'policy'
  if (result.error === 'budget_time') return 'time'
  const isRefused = result.error === 'entropy_refused' || result.error === 'entropy_used'
  return isRefused && entropy.refuse !== undefined ? 'sample' : undefined
}

function failed(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}
