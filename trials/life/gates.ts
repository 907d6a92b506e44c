import type { CrashPoint } from './commands.ts'

/** Wraps every call of a worker to the outside. */
export type Gate = <Result>(call: () => Promise<Result>) => Promise<Result>

export class Crash extends Error {
  override name = 'Crash'
}

/** All calls fail from the crash on. */
export function createCrash(point: CrashPoint | undefined): Gate {
  let calls = 0
  return async (call) => {
    calls += 1
    if (point === undefined || calls < point.at) return call()
    if (calls === point.at && point.when === 'after') await call()
    throw new Crash()
  }
}

/** Lets one call run at a time. When all parties wait, the next number in the list selects one. A party may have several calls waiting. */
export function createTurns(parties: number, order: readonly number[]) {
  const waiting = new Map<number, (() => void)[]>()
  let live = parties
  let used = 0
  let isCalling = false
  function next() {
    if (isCalling || waiting.size === 0 || waiting.size < live) return
    const candidates = [...waiting.keys()].sort()
    const chosen = candidates[(order[used % order.length] ?? 0) % candidates.length] ?? 0
    used += 1
    const [resume, ...later] = waiting.get(chosen) ?? []
    if (later.length === 0) waiting.delete(chosen)
    else waiting.set(chosen, later)
    isCalling = true
    resume?.()
  }
  return {
    gateOf:
      (party: number): Gate =>
      async (call) => {
        await new Promise<void>((resolve) => {
          waiting.set(party, [...(waiting.get(party) ?? []), resolve])
          next()
        })
        try {
          return await call()
        } finally {
          isCalling = false
          next()
        }
      },
    leave() {
      live -= 1
      next()
    },
  }
}
