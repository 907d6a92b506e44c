import { median } from '@countersign/testing/stack'
import { applyLoad } from '../bench/applyLoad.ts'
import { repeatCalmly } from '../bench/repeatCalmly.ts'
import { prepareSignings } from '../bench/signer.ts'

export type Throughput = {
  connections: number
  /** Signatures per second with one coordinator and with all, and the median of the ratios of each round. */
  one: number
  all: number
  ratio: number
  /** Rounds that other work on the machine disturbed: those left out, and those that count for want of better ones. */
  discarded: number
  disturbed: number
}

const SLICE_MS = 3_000
/** Of each coordinator by itself, so that none is compared while its code is still being compiled; and of all. */
const WARM_SLICES = { each: 5, all: 2 }
/** More than can be signed in a slice. */
const PREPARED = 9_000

/** Takes turns: one coordinator, then all of them, at the same balancer's speed, on the same enclaves and database. */
export async function compareThroughput(parameters: {
  /** Of each coordinator alone; the first is the one that is compared. */
  eachUrl: readonly string[]
  allUrl: string
  cookies: readonly string[]
  connections: number
  rounds: number
}): Promise<Throughput> {
  const { eachUrl, allUrl, cookies, connections, rounds } = parameters
  const measure = async (url: string) => {
    const next = prepareSignings({ cookies, connections, count: PREPARED })
    return (await applyLoad({ url, connections, sliceMs: SLICE_MS, next })).rate
  }
  for (const url of eachUrl) {
    for (let slice = 0; slice < WARM_SLICES.each; slice++) await measure(url)
  }
  for (let slice = 0; slice < WARM_SLICES.all; slice++) await measure(allUrl)
  const { repeats, discarded, disturbed } = await repeatCalmly({ rounds, isQuick: false }, async () => {
    const one = await measure(eachUrl[0] ?? '')
    const all = await measure(allUrl)
    return { one, all, ratio: all / one }
  })
  const of = (pick: (repeat: (typeof repeats)[number]) => number) => median(repeats.map(pick))
  return {
    connections,
    one: of(({ one }) => one),
    all: of(({ all }) => all),
    ratio: of(({ ratio }) => ratio),
    discarded,
    disturbed,
  }
}
