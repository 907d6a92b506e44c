/** How long logs may still be read: a service that is slow on purpose must not keep back what the chain shows. */
export type LogTime = { leftMs: number }

/** More than a log of as many entries as one look reads takes, at the rate at which a service answers by default. */
const DEFAULT_MS = 4 * 3_600_000

/** One for all wallets that are looked at together; four hours unless given. */
export function createLogTime(leftMs: number = DEFAULT_MS): LogTime {
  return { leftMs }
}

/** Takes from it what the work needs, which is to end when `isOver` says so. */
export async function spendLogTime<Result>(
  { now, logTime }: { now: () => Date; logTime: LogTime },
  work: (isOver: () => boolean) => Promise<Result>,
): Promise<Result> {
  const startedMs = now().getTime()
  // A clock that is put back gives no time.
  const toSpentMs = () => Math.max(0, now().getTime() - startedMs)
  try {
    return await work(() => toSpentMs() >= logTime.leftMs)
  } finally {
    logTime.leftMs -= toSpentMs()
  }
}
