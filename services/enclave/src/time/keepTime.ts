import { ServiceError } from '@countersign/protocol'
import type { LearnTimeDeps } from './learnTime.ts'

export type KeepTimeDeps = Omit<LearnTimeDeps, 'clock'> & {
  /** Whether something waits for a later floor. */
  isNeeded(): boolean
}

const CHECK_MS = 30_000
const ASK_EVERY_MS = 3_600_000

/**
 * Asks the issuers again once the time is known: every hour, and every 30 seconds while it is needed. Without sign-ins and signed
 * samples nothing else raises the floor, and what is remembered until the floor has passed it would be remembered for ever. One
 * question at a time; no answer counts that lies more than 65 seconds ahead.
 */
export async function keepTime({ time, fetchDate, isNeeded, wait, log }: KeepTimeDeps, signal: AbortSignal) {
  // Counted in pauses: the clock is the host's.
  let waitedMs = 0
  for (;;) {
    await wait(CHECK_MS)
    if (signal.aborted) return
    waitedMs += CHECK_MS
    if (!time.isKnown() || (waitedMs < ASK_EVERY_MS && !isNeeded())) continue
    waitedMs = 0
    try {
      const dateMs = await fetchDate()
      const aheadMs = dateMs - time.now()
      if (!time.raise(dateMs)) log.warn({ msg: 'Refused the issuers’ time', aheadMs })
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      log.warn({ msg: 'Could not learn the time', code: error.code, reason: error.details })
    }
  }
}
