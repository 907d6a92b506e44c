import { readResidentMib } from '@countersign/testing'
import { median } from '@countersign/testing/stack'
import type { Member } from '../member.ts'
import { readHeapMib } from './readHeapMib.ts'

/** Of one process, in MiB. */
type Footprint = {
  /** Resident, as it runs. V8 gives a process more room for young objects when many survive at one moment, and seldom takes it back. */
  running: number
  /** Resident, just after all garbage is collected, and such room given back. */
  resident: number
  /** What its threads keep then: objects and buffers. */
  heap: number
}

/** One process, after its warm-up and at the end. */
export type Growth = { name: string; early: Footprint; late: Footprint }

type Watched = Pick<Member, 'name' | 'pid'> & { inspectorUrl: string }

/** Caches and compiled code come to their size in the first part. */
const WARM_UP = 0.4
/** The part at whose end it is measured: the last of the warm-up, and the last of all. */
const WINDOW = 0.1
const EVERY_MS = 2_000

/** Takes so long. */
export async function measureGrowth(watched: readonly Watched[], durationMs: number): Promise<Growth[]> {
  await sleep((WARM_UP - WINDOW) * durationMs)
  const early = await measure(watched, WINDOW * durationMs)
  await sleep((1 - WARM_UP - WINDOW) * durationMs)
  const late = await measure(watched, WINDOW * durationMs)
  return watched.flatMap(({ name }, index) => {
    const [before, after] = [early[index], late[index]]
    return before && after ? [{ name, early: before, late: after }] : []
  })
}

/** What they have as they run, the median over this time; then each collects its garbage. */
async function measure(watched: readonly Watched[], durationMs: number): Promise<Footprint[]> {
  const endsAt = performance.now() + durationMs
  const samples: number[][] = []
  do {
    await sleep(Math.min(EVERY_MS, Math.max(0, endsAt - performance.now())))
    samples.push(await readResidents(watched))
  } while (performance.now() < endsAt)
  const heaps = await Promise.all(watched.map(({ inspectorUrl }) => readHeapMib(inspectorUrl)))
  const residents = await readResidents(watched)
  return heaps.map((heap, index) => {
    const running = median(samples.map((sample) => sample[index] ?? Number.NaN))
    return { running, resident: residents[index] ?? Number.NaN, heap }
  })
}

const readResidents = (watched: readonly Watched[]) => Promise.all(watched.map(({ pid }) => readResidentMib(pid())))
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
