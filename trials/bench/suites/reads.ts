import { startPostgres } from '@countersign/testing'
import { median, percentile, withScope } from '@countersign/testing/stack'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { applyLoad } from '../applyLoad.ts'
import { completeProofs } from '../completeProofs.ts'
import { toGet } from '../connectCaller.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { signInAll, signMany } from '../signer.ts'
import { type Program, startEchoServer, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'

const CONNECTIONS = [1, 64]
/** Of each state. */
const PROOFS = 100
const WARM_SLICES = 4
const VERSIONS = [
  { receiptVersion: 1, suffix: '' },
  { receiptVersion: 2, suffix: ', receipts of version 2' },
] as const

type Context = { run: Run; databaseUrl: string; satellite: Program }

/** `GET /proof/:slug` of complete proofs with their receipts, beside an echo server that answers as many bytes, in turns. */
export function benchReads(run: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const measured: Measured[] = []
    for (const version of VERSIONS) {
      const databaseUrl = await postgres.createDatabase()
      measured.push(await measureVersion({ run, databaseUrl, satellite }, version))
    }
    const bytes = measured.map((one) => one.bytes.toLocaleString('en-GB')).join(' and ')
    return {
      suite: 'reads',
      title: 'Reading proofs',
      setting:
        `\`GET /proof/:slug\` on PostgreSQL, complete proofs with their receipts, ${bytes} bytes each, ` +
        'beside an echo server of the same framework that answers as many; before its event is final, the state of a proof is looked up for each read; ' +
        `median of ${run.rounds} rounds of ${toSliceMs(run)} ms, ${describeCalm(measured.flatMap(({ calms }) => calms))}.`,
      rows: measured.flatMap(({ rows }) => rows),
    }
  })
}

type Measured = { bytes: number; rows: Row[]; calms: Calm<unknown>[] }

function measureVersion(context: Context, { receiptVersion, suffix }: (typeof VERSIONS)[number]): Promise<Measured> {
  const { run, databaseUrl, satellite } = context
  const { rounds, isQuick, say } = run
  return withScope(async ({ add }) => {
    const stack = add(await startStack({ satellite, databaseUrl, limit: 256, users: 1, receiptVersion }), ({ stop }) =>
      stop(),
    )
    const count = isQuick ? 10 : PROOFS
    const slugs = await signMany(stack, { cookies: await signInAll(stack, 1), count: 2 * count })
    const { store, pipeline } = await openStores({ databaseUrl })
    add(store, ({ close }) => close())
    await completeProofs(pipeline, slugs.slice(0, count))
    await completeProofs(pipeline, slugs.slice(count), { isFinal: false })
    const requests = slugs.map((slug) => toGet(`/proof/${slug}`))
    const [final, confirmed] = [requests.slice(0, count), requests.slice(count)]
    const bytes = (await (await fetch(`${stack.address}/proof/${slugs[0]}`)).arrayBuffer()).byteLength
    const echo = add(await startEchoServer({ BODY_BYTES: String(bytes) }), stopProgram)
    const measure = async (url: string, connections: number, asked: readonly Buffer[]) => {
      const next = () => asked[Math.floor(Math.random() * asked.length)] ?? Buffer.alloc(0)
      const { latencies, rate } = await applyLoad({ url, connections, sliceMs: toSliceMs(run), next })
      return { rate, p50: median(latencies), p99: percentile(latencies, 0.99) }
    }
    say(`warming up${suffix}`)
    for (let slice = 0; slice < WARM_SLICES; slice++) await measure(stack.address, 64, requests)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const connections of CONNECTIONS) {
      say(`${connections} connections${suffix}`)
      const calm = await repeatCalmly({ rounds, isQuick }, async () => {
        const own = await measure(stack.address, connections, final)
        const plain = await measure(echo.url, connections, final)
        const early = await measure(stack.address, connections, confirmed)
        return { own, early, plain }
      })
      calms.push(calm)
      for (const [kind, name] of [
        ['own', suffix],
        ['early', `${suffix}, before it is final`],
      ] as const) {
        const of = (pick: (repeat: (typeof calm.repeats)[number]) => number) => median(calm.repeats.map(pick))
        const at = { value: connections, of: 'connections' }
        const ratio = of((repeat) => repeat[kind].rate / repeat.plain.rate)
        rows.push(
          {
            name: `reads${name}`,
            at,
            value: of((repeat) => repeat[kind].rate),
            unit: '/s',
            ratios: [{ value: ratio, to: 'an echo server' }],
          },
          { name: `p50${name}`, at, value: of((repeat) => repeat[kind].p50), unit: 'ms' },
          { name: `p99${name}`, at, value: of((repeat) => repeat[kind].p99), unit: 'ms' },
        )
      }
    }
    return { bytes, rows, calms }
  })
}

const toSliceMs = ({ isQuick }: Run) => (isQuick ? 300 : 2_000)
