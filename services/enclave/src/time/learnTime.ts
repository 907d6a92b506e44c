import { ServiceError } from '@countersign/protocol/core'
import type { Log } from '@countersign/service'
import type { Clock } from '../ports.ts'
import type { Time } from './time.ts'

export type LearnTimeDeps = {
  time: Time
  clock: Clock
  /** Fetches the keys of every issuer. Returns the oldest time among the answers, or throws if there is none. */
  fetchDate(): Promise<number>
  wait(durationMs: number): Promise<void>
  log: Pick<Log, 'info' | 'warn'>
}

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 10_000
/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * Asks the issuers for the time until one has answered. Resolves when sessions can be opened. TLS authenticates the issuers, but their
 * certificates are checked by the host's clock: someone with the leaked key of an expired one could lie. An answer may also come from a
 * cache, so its date only proves that this time has passed.
 */
export async function learnTime({ time, clock, fetchDate, wait, log }: LearnTimeDeps, signal: AbortSignal) {
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      const leftMs = time.learn(await fetchDate())
      const behindMs = time.floor() - clock.now()
      if (behindMs > 0) log.warn({ msg: 'The clock is behind the issuers’', behindMs })
      // A boot begins within the next second, unless the clock was ahead when it began.
      if (leftMs > 1_000) log.warn({ msg: 'The clock was set back since the start', leftMs })
      return await wait(Math.min(leftMs, MAX_TIMER_MS))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      log.warn({ msg: 'Could not learn the time', code: error.code, reason: error.details })
      await wait(pauseMs)
    }
  }
}
