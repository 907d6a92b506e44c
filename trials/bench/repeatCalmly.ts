import { createHash } from 'node:crypto'

/** A repeat is disturbed if a fixed piece of work takes longer than this times the best, before or after it. */
const MAX_DISTURBANCE = 1.3
/** On a machine that is never calm, so many repeats for each round are enough; where the figures do not matter, one. */
const MAX_REPEATS = 2

/** `discarded` were made and not used; `disturbed` were used all the same, because there were no better ones. */
export type Calm<Result> = { repeats: Result[]; discarded: number; disturbed: number }

/** Repeats a measurement until as many as asked for were not disturbed by other work on the machine, or gives up and takes the calmest. */
export async function repeatCalmly<Result>(
  { rounds, isQuick }: { rounds: number; isQuick: boolean },
  measure: (round: number) => Promise<Result>,
): Promise<Calm<Result>> {
  const limit = (isQuick ? 1 : MAX_REPEATS) * rounds
  const made: { result: Result; took: number }[] = []
  let best = calibrate()
  const isCalm = ({ took }: { took: number }) => took <= MAX_DISTURBANCE * best
  while (made.length < limit && made.filter(isCalm).length < rounds) {
    const before = calibrate()
    const result = await measure(made.length)
    const after = calibrate()
    best = Math.min(best, before, after)
    made.push({ result, took: Math.max(before, after) })
  }
  const used = made.toSorted((left, right) => left.took - right.took).slice(0, rounds)
  return {
    repeats: used.map(({ result }) => result),
    discarded: made.length - used.length,
    disturbed: used.filter((one) => !isCalm(one)).length,
  }
}

/** For the setting of a report. */
export function describeCalm(calms: readonly Omit<Calm<unknown>, 'repeats'>[]): string {
  const discarded = calms.reduce((sum, calm) => sum + calm.discarded, 0)
  const disturbed = calms.reduce((sum, calm) => sum + calm.disturbed, 0)
  const used = disturbed === 0 ? '' : `; ${disturbed} of those that count were disturbed by other work too`
  return `${discarded} disturbed ones discarded${used}`
}

/** Milliseconds for a fixed piece of work; the best of three, since a collection of garbage is no disturbance. */
function calibrate(): number {
  return Math.min(work(), work(), work())
}

function work(): number {
  const start = performance.now()
  let value = Buffer.alloc(64)
  for (let index = 0; index < 20_000; index++) value = createHash('sha512').update(value).digest()
  return performance.now() - start
}
