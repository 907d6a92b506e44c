import type { OpenPublication } from '../store/publications.ts'
import type { Clock } from '../system.ts'

/** For so long, by the clock, this process must have seen what looks like a loss before it acts on it. */
export const HOLDING_MS = 1_800_000

/** Where and when this process first saw that something holds, and when it last did. */
export type Holding = { block: number; timeMs: number; lastMs: number }

/** What a run of this process goes by. */
type Look = { clock: Clock; head: { number: number } }

/** Notes that something holds now. Returns since which block, and for how long, this process has seen it hold. */
export function noteHolding(
  { clock, head }: Look,
  seen: Map<number, Holding>,
  id: number,
): { block: number; durationMs: number } {
  const now = clock.now()
  const before = seen.get(id)
  // A process that slept, or whose jobs another did, has not seen that it held all the time; one whose clock was moved cannot tell.
  const isContinued = before !== undefined && Math.abs(now - before.lastMs) <= HOLDING_MS
  const since = isContinued ? before : { block: head.number, timeMs: now }
  seen.set(id, { ...since, lastMs: now })
  return { block: since.block, durationMs: now - since.timeMs }
}

/**
 * Whether a publication is to be given up: its deadline is over, and this process has long seen the reason. The deadline alone says little:
 * it can pass while no worker runs, and of two workers one clock can be a day ahead of the other.
 */
export function isOverdue(
  run: Look & { publishDeadlineMs: number },
  seen: Map<number, Holding>,
  { id, createdAt }: Pick<OpenPublication, 'id' | 'createdAt'>,
): boolean {
  const { clock, publishDeadlineMs } = run
  const { durationMs } = noteHolding(run, seen, id)
  return clock.now() >= createdAt + publishDeadlineMs && durationMs >= Math.min(HOLDING_MS, publishDeadlineMs)
}
