import { setTimeout } from 'node:timers/promises'
import { readResidentMib, startPostgres } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import type { Report, Row, Run, Series } from '../report.ts'
import { signInAll, signMany } from '../signer.ts'
import { startSatelliteServer, startStack, stopProgram } from '../startStack.ts'

const USERS = 8
const CONNECTIONS = 64
/** In all, at each look. The first is the warm-up. */
const SIGNATURES = [5_000, 20_000]
const PART = 1_280
const IDLE_MS = 30_000
const SAMPLE_MS = 1_000

/** Resident size of enclave and coordinator: after the start, after so many signatures, and after a while without work. */
export function benchMemory({ isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const counts = isQuick ? SIGNATURES.map((count) => count / 20) : SIGNATURES
    const idleMs = isQuick ? 2_000 : IDLE_MS
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const databaseUrl = await postgres.createDatabase()
    const stack = add(await startStack({ satellite, databaseUrl, limit: 256, users: USERS }), ({ stop }) => stop())
    const processes = stack.pids()
    const series = Object.keys(processes).map((name) => ({ name, points: [] as [number, number][] }))
    const startedAt = performance.now()
    const look = async () => {
      const seconds = (performance.now() - startedAt) / 1000
      const sizes = await Promise.all(Object.values(processes).map(readResidentMib))
      sizes.forEach((size, index) => void series[index]?.points.push([seconds, size]))
      return sizes
    }
    const sampler = setInterval(() => void look().catch(() => {}), SAMPLE_MS)
    try {
      const moments: { name: string; sizes: number[] }[] = [{ name: 'after the start', sizes: await look() }]
      const cookies = await signInAll(stack, USERS)
      let done = 0
      for (const count of counts) {
        say(`${count} signatures`)
        // In parts: requests that wait to be sent would make this process large, and slow.
        while (done < count) {
          const part = Math.min(PART, count - done)
          await signMany(stack, { cookies, count: part, connections: CONNECTIONS })
          done += part
        }
        moments.push({ name: `after ${count.toLocaleString('en-GB')} signatures`, sizes: await look() })
      }
      say('idle')
      await setTimeout(idleMs)
      moments.push({ name: `after ${idleMs / 1000} s without work`, sizes: await look() })
      return toReport({ names: Object.keys(processes), moments, series, warmAt: 1 })
    } finally {
      clearInterval(sampler)
    }
  })
}

function toReport(parameters: {
  names: string[]
  moments: { name: string; sizes: number[] }[]
  series: Series[]
  warmAt: number
}): Report {
  const { names, moments, series, warmAt } = parameters
  const warm = moments[warmAt]
  const rows: Row[] = names.flatMap((name, index) =>
    moments.map((moment, position) => {
      const value = moment.sizes[index] ?? Number.NaN
      const ratios =
        position <= warmAt ? [] : [{ value: value / (warm?.sizes[index] ?? Number.NaN), to: `${warm?.name}` }]
      return { name: `${name}, ${moment.name}`, value, unit: 'MiB', ratios }
    }),
  )
  return {
    suite: 'memory',
    title: 'Memory',
    setting: `Resident size of the processes, PostgreSQL, ${CONNECTIONS} connections that sign without a pause.`,
    rows,
    series,
  }
}
