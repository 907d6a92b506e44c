import { startPostgres } from '@countersign/testing'
import { median, percentile, withScope } from '@countersign/testing/stack'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { applyLoad } from '../applyLoad.ts'
import { completeProofs } from '../completeProofs.ts'
import { toGet } from '../connectCaller.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { signInAll, signMany } from '../signer.ts'
import { startEchoServer, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'

const CONNECTIONS = [1, 64]
const PROOFS = 200
const WARM_SLICES = 4

/** `GET /proof/:slug` of complete proofs with their receipts, beside an echo server that answers as many bytes, in turns. */
export function benchReads({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const sliceMs = isQuick ? 300 : 2_000
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const databaseUrl = await postgres.createDatabase()
    const stack = add(await startStack({ satellite, databaseUrl, limit: 256, users: 1 }), ({ stop }) => stop())
    const slugs = await signMany(stack, { cookies: await signInAll(stack, 1), count: isQuick ? 20 : PROOFS })
    const { store, pipeline } = await openStores({ databaseUrl })
    add(store, ({ close }) => close())
    await completeProofs(pipeline, slugs)
    const requests = slugs.map((slug) => toGet(`/proof/${slug}`))
    const bytes = (await (await fetch(`${stack.address}/proof/${slugs[0]}`)).arrayBuffer()).byteLength
    const echo = add(await startEchoServer({ BODY_BYTES: String(bytes) }), stopProgram)
    const measure = async (url: string, connections: number) => {
      const next = () => requests[Math.floor(Math.random() * requests.length)] ?? Buffer.alloc(0)
      const { latencies, rate } = await applyLoad({ url, connections, sliceMs, next })
      return { rate, p50: median(latencies), p99: percentile(latencies, 0.99) }
    }
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++) await measure(stack.address, 64)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const connections of CONNECTIONS) {
      say(`${connections} connections`)
      const calm = await repeatCalmly({ rounds, isQuick }, async () => {
        const own = await measure(stack.address, connections)
        const plain = await measure(echo.url, connections)
        return { ...own, toEcho: own.rate / plain.rate }
      })
      calms.push(calm)
      const of = (pick: (repeat: (typeof calm.repeats)[number]) => number) => median(calm.repeats.map(pick))
      const at = { value: connections, of: 'connections' }
      rows.push(
        {
          name: 'reads',
          at,
          value: of(({ rate }) => rate),
          unit: '/s',
          ratios: [{ value: of(({ toEcho }) => toEcho), to: 'an echo server' }],
        },
        { name: 'p50', at, value: of(({ p50 }) => p50), unit: 'ms' },
        { name: 'p99', at, value: of(({ p99 }) => p99), unit: 'ms' },
      )
    }
    return {
      suite: 'reads',
      title: 'Reading proofs',
      setting:
        `\`GET /proof/:slug\` on PostgreSQL, complete proofs with their receipts, ${bytes.toLocaleString('en-GB')} bytes each, ` +
        'beside an echo server of the same framework that answers as many; ' +
        `median of ${rounds} rounds of ${sliceMs} ms, ${describeCalm(calms)}.`,
      rows,
    }
  })
}
