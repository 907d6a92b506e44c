import { ServiceError } from '@countersign/protocol/core'
import type { LearnTimeDeps } from './learnTime.ts'

const ASK_EVERY_MS = 3_600_000

/**
 * Asks the issuers again every hour once the time is known, because monotonic time counts slowly and the first answer may have come from a
 * cache. Sends one request at a time, and ignores answers more than 65 seconds ahead.
 */
export async function keepTime({ time, fetchDate, wait, log }: Omit<LearnTimeDeps, 'clock'>, signal: AbortSignal) {
  for (;;) {
    await wait(ASK_EVERY_MS)
    if (signal.aborted) return
    if (!time.isKnown()) continue
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
