import { startPostgres } from '@countersign/testing'
import { median, percentile, withScope } from '@countersign/testing/stack'
import { applyLoad } from '../applyLoad.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { prepareSignings, signInAll } from '../signer.ts'
import { QUOTE_MS, startEchoServer, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'

const CONNECTIONS = [1, 16, 64, 256]
/** Code that ran a few thousand times runs several times faster than code that has just been loaded. */
const WARM_SLICES = 8
const USERS = 8
/** More than any machine answers in a second. */
const MAX_PER_SECOND = 4_000

type Service = { url: string; cookies: readonly string[]; isEcho?: boolean }

/**
 * `POST /sign/digest` on PostgreSQL with quotes of 39 ms and every check on, beside an echo server of the same framework and
 * beside one quote per signature, in turns; the median over repeats of the ratios within each repeat.
 */
export function benchSign({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const sliceMs = isQuick ? 300 : 2_000
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const echo = add(await startEchoServer(), stopProgram)
    const start = async (limit: number): Promise<Service> => {
      const databaseUrl = await postgres.createDatabase()
      const stack = add(await startStack({ satellite, users: USERS, databaseUrl, limit }), ({ stop }) => stop())
      return { url: stack.address, cookies: await signInAll(stack, USERS) }
    }
    const batched = await start(256)
    const single = await start(1)
    const plain = { url: echo.url, cookies: [''], isEcho: true }
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++) await measure(batched, 256, sliceMs)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const connections of CONNECTIONS) {
      say(`${connections} connections`)
      const calm = await repeatCalmly({ rounds, isQuick }, async () => {
        const slow = await measure(single, connections, sliceMs)
        const own = await measure(batched, connections, sliceMs)
        const fast = await measure(plain, connections, sliceMs)
        return { ...own, slow: slow.rate, toSingle: own.rate / slow.rate, toEcho: own.rate / fast.rate }
      })
      calms.push(calm)
      const of = (pick: (repeat: (typeof calm.repeats)[number]) => number) => median(calm.repeats.map(pick))
      const at = { value: connections, of: 'connections' }
      rows.push(
        {
          name: 'signatures',
          at,
          value: of(({ rate }) => rate),
          unit: '/s',
          ratios: [
            { value: of(({ toSingle }) => toSingle), to: 'one quote each' },
            { value: of(({ toEcho }) => toEcho), to: 'an echo server' },
          ],
        },
        { name: 'signatures, one quote each', at, value: of(({ slow }) => slow), unit: '/s' },
        { name: 'p50', at, value: of(({ p50 }) => p50), unit: 'ms' },
        { name: 'p99', at, value: of(({ p99 }) => p99), unit: 'ms' },
      )
    }
    return {
      suite: 'sign',
      title: 'Signing through the coordinator',
      setting:
        `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, every check on; client, provider, satellite, database, ` +
        `enclave and coordinator share the machine; median of ${rounds} rounds of ${sliceMs} ms after a warm-up, ` +
        `${describeCalm(calms)}.`,
      rows,
    }
  })
}

async function measure({ url, cookies, isEcho = false }: Service, connections: number, sliceMs: number) {
  const count = Math.ceil((MAX_PER_SECOND * sliceMs) / 1000)
  const next = prepareSignings({ cookies, connections, count, mayRepeat: isEcho })
  const { latencies, seconds } = await applyLoad({ url, connections, sliceMs, next })
  return { rate: latencies.length / seconds, p50: median(latencies), p99: percentile(latencies, 0.99) }
}
