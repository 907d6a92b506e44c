import { hash } from 'node:crypto'
import {
  type Collateral,
  describeCollateral,
  parseCollateral,
  QuoteError,
  type TrustedRoot,
} from '@countersign/attestation'
import { createPlatformReader as createQuotePlatformReader, type Platform } from '@countersign/evidence'
import { toCanonicalJson } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../../../errors.ts'
import { isAhead } from '../../../isAhead.ts'
import type { CollateralCache } from '../../../store/collateralCache.ts'
import { type Clock, type Schedule, systemSchedule } from '../../../system.ts'
import { toReason } from '../../../toReason.ts'
import { type CheckedCollateral, checkCollateral } from './checkCollateral.ts'

/** Provides current, checked collateral for a platform. Throws `collateral_stale`. */
export type CollateralStore = {
  /** Also returns its canonical bytes and their hash. The platform is the one that a quote names. */
  current(platform: Platform): Promise<{ collateral: Collateral; bytes: Uint8Array<ArrayBuffer>; hash: string }>
  /** The expiry of the stored collateral, by platform. */
  listLapses(): readonly { platform: string; lapsesAt: number }[]
  stop(): Promise<void>
}

export type CollateralStoreDeps = {
  /** Fetches from Intel's PCS or a PCCS, without checking. Times out by itself. */
  fetchCollateral(platform: Platform): Promise<Collateral>
  roots: readonly TrustedRoot[]
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  cache?: CollateralCache
  /** How long before its expiry collateral is fetched again. */
  refreshBeforeMs?: number
  /** The age at which collateral is fetched again. Intel may revoke before the old lists expire. */
  maxAgeMs?: number
  schedule?: Schedule
  /** Called after each attempt if the collateral in use has passed half of its refresh period. */
  onLapsing?(platform: Platform, lapsesAt: Date): void
}

type Entry = CheckedCollateral & {
  collateral: Collateral
  bytes: Uint8Array<ArrayBuffer>
  hash: string
  fetchedAt: number
}

type State = {
  platform: Platform
  entry: Entry | undefined
  underWay: Promise<void> | undefined
  failures: number
  /** No attempt before this time. */
  retryAt: number
}

const DAY_MS = 86_400_000
/** The pause after any answer, and after the first failure. */
const PAUSE_MS = 60_000
const FIRST_RETRY_MS = 5_000
const MAX_RETRY_MS = 600_000
/** A quote names its platform before it is verified, so anyone could name many platforms. */
const MAX_PLATFORMS = 16

/** Caches collateral by platform: fetches it on the first request and refreshes it in the background. */
export function createCollateralStore(deps: CollateralStoreDeps): CollateralStore {
  const { clock, log, roots, refreshBeforeMs = 7 * DAY_MS, maxAgeMs = DAY_MS, schedule = systemSchedule } = deps
  const states = new Map<string, State>()
  let callOff = () => {}
  let isStopped = false

  function stateOf({ fmspc, ca }: Platform): State {
    const key = `${fmspc} ${ca}`
    const known = states.get(key)
    if (known !== undefined) return known
    for (const [oldest, { entry, underWay }] of states) {
      if (states.size < MAX_PLATFORMS) break
      // Evict platforms without collateral first.
      if (entry === undefined && underWay === undefined) states.delete(oldest)
    }
    if (states.size >= MAX_PLATFORMS) throw stale()
    const state: State = {
      platform: { fmspc, ca },
      entry: undefined,
      underWay: undefined,
      failures: 0,
      retryAt: Number.NEGATIVE_INFINITY,
    }
    states.set(key, state)
    return state
  }

  const isInDate = (entry: Entry | undefined): entry is Entry =>
    entry !== undefined && entry.notBefore <= clock.now() && clock.now() <= entry.notAfter

  const isPausing = ({ retryAt }: State) => isAhead(retryAt, { now: clock.now(), spanMs: MAX_RETRY_MS })

  /** When to fetch again. Collateral that never arrived is fetched only on request. */
  function dueAt(state: State): number {
    const { entry, retryAt } = state
    if (entry === undefined) return Number.POSITIVE_INFINITY
    const agesAt = entry.fetchedAt + maxAgeMs
    const isYoung = isAhead(agesAt, { now: clock.now(), spanMs: maxAgeMs })
    return Math.max(
      isPausing(state) ? retryAt : Number.NEGATIVE_INFINITY,
      isYoung ? Math.min(entry.notAfter - refreshBeforeMs, agesAt) : Number.NEGATIVE_INFINITY,
    )
  }

  function toEntry(state: State, collateral: Collateral, fetchedAt: number): Entry {
    const checked = checkCollateral(collateral, { platform: state.platform, roots })
    const bytes = toCanonicalJson(collateral)
    return { ...checked, collateral, bytes, hash: hash('sha256', bytes, 'hex'), fetchedAt }
  }

  function refresh(state: State): Promise<void> {
    if (state.underWay !== undefined) return state.underWay
    if (isStopped || isPausing(state)) return Promise.resolve()
    state.underWay = attempt(state).finally(() => {
      state.underWay = undefined
      plan()
    })
    return state.underWay
  }

  async function attempt(state: State) {
    if (!isInDate(state.entry)) {
      await load(state)
      // The stored collateral is still valid. The timer, which is now due, fetches the newest.
      if (isInDate(state.entry)) return
    }
    try {
      const entry = toEntry(state, await deps.fetchCollateral(state.platform), clock.now())
      if (!isInDate(entry))
        throw new CoordinatorError('collateral_stale', 'the fetched collateral is expired or not yet valid')
      const current = state.entry
      if (isInDate(current) && entry.tcbEvaluationDataNumber < current.tcbEvaluationDataNumber) {
        throw new CoordinatorError('collateral_stale', 'the fetched collateral is older than the current one')
      }
      state.entry = entry
      state.failures = 0
      state.retryAt = clock.now() + PAUSE_MS
      log.info({ msg: 'Fetched collateral', ...state.platform, hash: entry.hash, lapsesAt: toText(entry.notAfter) })
      await save(state, entry)
    } catch (error) {
      const delayMs = Math.min(FIRST_RETRY_MS * 2 ** state.failures, MAX_RETRY_MS)
      state.failures += 1
      state.retryAt = clock.now() + delayMs
      const lapsesAt = state.entry === undefined ? undefined : toText(state.entry.notAfter)
      log.warn({ msg: 'Could not fetch collateral', ...state.platform, ...toReason(error), lapsesAt, delayMs })
    }
    const { platform, entry } = state
    if (isInDate(entry) && entry.notAfter - clock.now() < refreshBeforeMs / 2) {
      deps.onLapsing?.(platform, new Date(entry.notAfter))
    }
  }

  async function load(state: State) {
    try {
      const bytes = await deps.cache?.load(state.platform)
      if (bytes === undefined) return
      const collateral = parseCollateral(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
      // The cache doesn't record an age, so fetch again as soon as possible.
      const entry = toEntry(state, collateral, Number.NEGATIVE_INFINITY)
      if (isInDate(entry)) state.entry = entry
    } catch (error) {
      log.warn({ msg: 'Could not use cached collateral', ...state.platform, ...toReason(error) })
    }
  }

  async function save(state: State, { bytes }: Entry) {
    try {
      await deps.cache?.save(state.platform, bytes)
    } catch (error) {
      log.warn({ msg: 'Could not cache collateral', ...state.platform, ...toReason(error) })
    }
  }

  /** Sets one timer, for the platform that is due first. */
  function plan() {
    callOff()
    if (isStopped) return
    const next = Math.min(...[...states.values()].map(dueAt))
    if (next === Number.POSITIVE_INFINITY) return
    callOff = schedule(
      () => {
        for (const state of states.values()) if (dueAt(state) <= clock.now()) void refresh(state)
        plan()
      },
      Math.min(Math.max(next - clock.now(), 1000), DAY_MS),
    )
  }

  return {
    async current(platform) {
      const state = stateOf(platform)
      if (!isInDate(state.entry)) await refresh(state)
      else if (dueAt(state) <= clock.now()) void refresh(state)
      if (!isInDate(state.entry)) throw stale()
      const { collateral, bytes, hash } = state.entry
      return { collateral, bytes, hash }
    },
    listLapses: () =>
      [...states.values()].flatMap(({ platform: { fmspc, ca }, entry }) =>
        entry === undefined ? [] : [{ platform: `${fmspc} ${ca}`, lapsesAt: entry.notAfter }],
      ),
    async stop() {
      isStopped = true
      callOff()
      await Promise.all([...states.values()].map(({ underWay }) => underWay))
    },
  }
}

function stale() {
  return new CoordinatorError('collateral_stale', 'no valid collateral for the enclave’s platform')
}

function toText(time: number): string {
  return new Date(time).toISOString()
}

export type SimulatedCollateralStoreDeps = {
  /** Creates the simulator, which only mock mode loads: `(at) => createSimulator({ at })`. */
  simulatorFactory(at: Date): { collateral(): Collateral }
  clock: Clock
}

/** The lifetime of simulated collateral. */
const SIMULATED_LIFETIME_MS = 29 * DAY_MS

/** Collateral of simulated hardware, issued again each day. */
export function createSimulatedCollateralStore(deps: SimulatedCollateralStoreDeps): CollateralStore {
  const { simulatorFactory, clock } = deps
  let made:
    | { collateral: Collateral; bytes: Uint8Array<ArrayBuffer>; hash: string; fmspc: string; madeAt: number }
    | undefined

  function make(now: number) {
    const collateral = simulatorFactory(new Date(now)).collateral()
    const bytes = toCanonicalJson(collateral)
    const { fmspc } = describeCollateral(collateral).tcbInfo
    return { collateral, bytes, hash: hash('sha256', bytes, 'hex'), fmspc, madeAt: now }
  }

  return {
    async current({ fmspc, ca }) {
      const now = clock.now()
      if (made === undefined || now < made.madeAt || now >= made.madeAt + DAY_MS) made = make(now)
      if (fmspc !== made.fmspc || ca !== 'platform') {
        throw stale()
      }
      return { collateral: made.collateral, bytes: made.bytes, hash: made.hash }
    },
    listLapses: () =>
      made === undefined ? [] : [{ platform: `${made.fmspc} platform`, lapsesAt: made.madeAt + SIMULATED_LIFETIME_MS }],
    async stop() {},
  }
}

/** Reads the platform that an enclave's quote names. Throws `attestation_invalid`. */
export type PlatformReader = (quote: Uint8Array) => Platform

export function createPlatformReader(): PlatformReader {
  const readPlatform = createQuotePlatformReader()
  return (quote) => {
    try {
      return readPlatform(quote)
    } catch (cause) {
      if (!(cause instanceof QuoteError)) throw cause
      throw new CoordinatorError('attestation_invalid', 'the enclave’s quote is not accepted', {
        details: cause.code,
        cause,
      })
    }
  }
}
