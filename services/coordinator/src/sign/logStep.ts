import type { WitnessPolicy } from '@countersign/log'
import { type AppendedEntries, isOffChain, type SignedStatement } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { createSignerFinder } from '../accounts/session.ts'
import type { EnclaveTerms, KeyEnclave } from '../enclave/keyEnclave.ts'
import { findLogKey, toCosigned } from '../enclave/logCalls.ts'
import { CoordinatorError, invalidAnswer } from '../errors.ts'
import type { LogKeeper } from '../log/logKeeper.ts'
import type { Claim, Clock, Schedule, Store } from '../ports.ts'
import { toReason } from '../toReason.ts'
import { countBytes, type SignJob, type SignProgress } from './job.ts'
import { createReleases } from './releases.ts'
import type { VerifiedBatch } from './verifyBatch.ts'

type LeafJob = SignJob<'leaf'>
type TimedJob = SignJob<'leaf' | 'time' | 'log'>

export type Failure = { job: LeafJob; reason: unknown }

/** Signing where the enclave has a log. */
export type SignLog = {
  begin(parameters: { appended: AppendedEntries; bootId: string; answer: SignProgress['answer'] }): LogStep
  /** Tells enclaves what is still to be told. */
  stop(): Promise<void>
}

/** The log's part in finishing one answer of an enclave. */
export type LogStep = {
  /** The job's entry under its key. Throws `attestation_invalid`: without one nobody could prove that it is in the log. */
  findEntry(job: LeafJob): LogPlace
  /** The verifier key of the log that has the entries. */
  getLogKey(terms: EnclaveTerms): string
  /** Writes entries and claims. `lost` are the jobs whose digest somebody else signs; the enclave is told to drop them. */
  record<Job extends TimedJob>(jobs: readonly Job[], terms: EnclaveTerms): Promise<{ owned: Job[]; lost: Job[] }>
  /** Waits for witnesses and for the quote, then asks for the statements. Null for one that the enclave has erased. */
  release(
    jobs: readonly TimedJob[],
    parameters: { need: WitnessPolicy | undefined; verified: Promise<VerifiedBatch> },
  ): Promise<readonly (SignedStatement | null)[]>
  /** The job is stored. */
  acknowledge(job: LeafJob): void
  /** The enclave drops these statements, so that nobody gets them, and their claims are given up. */
  drop(jobs: readonly LeafJob[]): Promise<void>
  /** Another request was first with this digest: answers its signature, once it is stored. */
  answerWinner(job: LeafJob): Promise<void>
  /** The run is over: no timer is left. */
  end(): void
}

type LogPlace = { index: number; timeMs: number }

/** How long a signature may take from the enclave's answer until its statement is asked for. The enclave itself erases after 30 s. */
const LIMIT_MS = 10_000
const GIVE_UP_MS = 1_000
/** How often and for how long to look for the signature of another who was first. */
const POLL_MS = 50
const PATIENCE_MS = 3_000

export function createSignLog(deps: {
  keeper: Pick<LogKeeper, 'record' | 'cosign' | 'giveUp'>
  enclave: Pick<KeyEnclave, 'release'>
  store: Pick<Store, 'findSigners'>
  clock: Clock
  sessionIdleMs: number
  schedule: Schedule
  log: Pick<Log, 'warn'>
}): SignLog {
  const { keeper, schedule, log } = deps
  const signers = createSignerFinder(deps)
  const releases = createReleases(deps)

  async function giveUpClaims(bootId: string, jobs: readonly LeafJob[]): Promise<void> {
    const limit = createLimit(schedule, GIVE_UP_MS)
    try {
      await limit.hold(keeper.giveUp(jobs.flatMap(toClaim)))
    } catch (error) {
      // They expire when the enclave has erased the leaves.
      log.warn({ msg: 'Could not give up claims', bootId, ...toReason(error) })
    } finally {
      limit.end()
    }
  }

  function begin({ appended, bootId, answer }: Parameters<SignLog['begin']>[0]): LogStep {
    const { origin } = appended
    const places = readPlaces(appended)
    const limit = createLimit(schedule, LIMIT_MS)
    return {
      findEntry({ keyId, leaf }) {
        const place = places.get(keyId + leaf.hash)
        if (place === undefined) throw invalidAnswer('the statement is not in the log')
        return place
      },
      getLogKey(terms) {
        const key = findLogKey(terms, origin)
        if (key !== undefined) return key
        throw new CoordinatorError('attestation_invalid', 'the enclave’s log is not one of its settings')
      },
      async record(jobs, terms) {
        const claims = jobs.flatMap(toClaim)
        const { lost } = await limit.hold(keeper.record(appended, { bootId, terms, claims }))
        const isLost = ({ leaf }: LeafJob) => lost.has(leaf.hash)
        const losers = jobs.filter(isLost)
        releases.drop(bootId, losers.map(toLeafHash))
        return { owned: jobs.filter((job) => !isLost(job)), lost: losers }
      },
      async release(jobs, { need, verified }) {
        const size = Math.max(...jobs.map(({ time }) => time.entryIndex ?? 0)) + 1
        const cosigned = keeper.cosign({ origin, size, ...(need && { needs: [need] }) })
        const [{ note }] = await limit.hold(Promise.all([cosigned, verified]))
        for (const job of jobs) job.log = { origin, note, index: job.time.entryIndex ?? 0 }
        const bytes = jobs.reduce((sum, job) => sum + countBytes(job), 0)
        const { statements } = await releases.release(
          { bootId, ...toCosigned(note), leaves: jobs.map(toLeafHash) },
          bytes,
        )
        return statements
      },
      acknowledge: (job) => releases.acknowledge(bootId, toLeafHash(job)),
      async drop(jobs) {
        releases.drop(bootId, jobs.map(toLeafHash))
        await giveUpClaims(bootId, jobs)
      },
      async answerWinner(job) {
        answer(job, await settle(findWinner(job)))
      },
      end: limit.end,
    }
  }

  async function findWinner({ sid, asked: { digest }, vault, address }: SignJob) {
    const limit = createLimit(schedule, PATIENCE_MS)
    try {
      for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += POLL_MS) {
        const { signed } = await limit.hold(signers.find({ sid, digest, wallet: vault && address }))
        if (signed !== undefined) return signed
        await new Promise<void>((resolve) => schedule(resolve, POLL_MS))
      }
      throw logUnavailable('the same was asked elsewhere, and is not signed yet')
    } finally {
      limit.end()
    }
  }

  return { begin, stop: releases.stop }
}

/** Of an entry in hex (`spec/log-v1.md`): the kind of a signature, and where its key id and leaf end and its time begins. */
const SIGNATURE = '01'
const TIME_AT = 98

/** By key id and leaf. Malformed entries are skipped: the log's writer refuses the answer as a whole. */
function readPlaces({ from, entries }: AppendedEntries): Map<string, LogPlace> {
  const places = new Map<string, LogPlace>()
  for (const [offset, entry] of entries.entries()) {
    if (!entry.startsWith(SIGNATURE)) continue
    const timeMs = Number.parseInt(entry.slice(TIME_AT), 16)
    places.set(entry.slice(SIGNATURE.length, TIME_AT), { index: from + offset, timeMs })
  }
  return places
}

function toClaim({ walletId, asked, leaf }: LeafJob): Claim[] {
  return isOffChain(asked) ? [] : [{ walletId, digest: asked.digest, leaf: leaf.hash }]
}

const toLeafHash = ({ leaf }: LeafJob) => leaf.hash

async function settle<Value>(work: Promise<Value>): Promise<PromiseSettledResult<Value>> {
  const [settled] = await Promise.allSettled([work])
  return settled
}

type Limit = { hold<Result>(work: Promise<Result>): Promise<Result>; end(): void }

/** Work that takes longer is abandoned, and its result dropped. */
function createLimit(schedule: Schedule, limitMs: number): Limit {
  let end = () => {}
  const over = new Promise<never>((_resolve, reject) => {
    end = schedule(() => reject(logUnavailable('it took too long')), limitMs)
  })
  // There may be nobody who waits.
  over.catch(() => {})
  return { hold: (work) => Promise.race([work, over]), end }
}

export function logUnavailable(details: string): CoordinatorError {
  return new CoordinatorError('log_unavailable', 'the log is not available', { details })
}
