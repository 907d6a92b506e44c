import { readResidentMib } from '@countersign/testing'
import { median } from '@countersign/testing/stack'
import type { Member } from '../cluster/member.ts'

/** Resident memory of each process over time, in MiB. */
export type Memory = {
  stop(): void
  /** From the part of the run after the warm-up: its first fifth, its last, and the ratio of their medians. */
  report(): { name: string; early: number; late: number; growth: number }[]
}

const EVERY_MS = 2_000
/** Caches and compiled code come to their size in the first part. */
const WARM_UP = 0.4

export function watchMemory(members: readonly Member[]): Memory {
  const samples = new Map<string, number[]>(members.map(({ name }) => [name, []]))
  const timer = setInterval(() => {
    for (const member of members) {
      // One that does not run just now has none.
      void readResidentMib(member.pid()).then(
        (mib) => samples.get(member.name)?.push(mib),
        () => {},
      )
    }
  }, EVERY_MS)
  return {
    stop: () => clearInterval(timer),
    report: () =>
      [...samples].map(([name, all]) => {
        const warm = all.slice(Math.floor(WARM_UP * all.length))
        const fifth = Math.max(1, Math.floor(warm.length / 5))
        const early = median(warm.slice(0, fifth))
        const late = median(warm.slice(-fifth))
        return { name, early, late, growth: late / early - 1 }
      }),
  }
}
