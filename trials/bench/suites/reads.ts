import { median, percentile, withScope } from '@countersign/testing/stack'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { completeProofs } from '../completeProofs.ts'
import { applyLoad, toGet } from '../load.ts'
import { describeCalm } from '../repeatCalmly.ts'
import { measureLoads, type Report, type Run, toRow } from '../report.ts'
import { signMany } from '../signer.ts'
import { type Bench, openBench, startEchoServer } from '../stack.ts'

const CONNECTIONS = [1, 64]
/** Of each state. */
const PROOFS = 100
const WARM_SLICES = 4
const VERSIONS = [
  { receiptVersion: 1, suffix: '' },
  { receiptVersion: 2, suffix: ', receipts of version 2' },
] as const

/** `GET /proof/:slug` of complete proofs with their receipts, beside an echo server that answers as many bytes, in turns. */
export function benchReads(run: Run): Promise<Report> {
  return withScope(async (scope) => {
    const bench = await openBench(scope)
    const measured = []
    for (const version of VERSIONS) measured.push(await measureVersion(run, bench, version))
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

function measureVersion(run: Run, { start }: Bench, { receiptVersion, suffix }: (typeof VERSIONS)[number]) {
  return withScope(async (scope) => {
    const service = await start({ users: 1, receiptVersion })
    const count = run.isQuick ? 10 : PROOFS
    const slugs = await signMany(service, { ...service, count: 2 * count })
    const { store, pipeline } = await openStores({ databaseUrl: service.databaseUrl })
    scope.add(store, ({ close }) => close())
    await completeProofs(pipeline, slugs.slice(0, count))
    await completeProofs(pipeline, slugs.slice(count), { isFinal: false })
    const requests = slugs.map((slug) => toGet(`/proof/${slug}`))
    const [final, confirmed] = [requests.slice(0, count), requests.slice(count)]
    const bytes = (await (await fetch(`${service.url}/proof/${slugs[0]}`)).arrayBuffer()).byteLength
    const echo = await startEchoServer(scope, { BODY_BYTES: String(bytes) })
    const measure = async (url: string, connections: number, asked: readonly Buffer[]) => {
      const next = () => asked[Math.floor(Math.random() * asked.length)] ?? Buffer.alloc(0)
      const { latencies, rate } = await applyLoad({ url, connections, sliceMs: toSliceMs(run), next })
      return { rate, p50: median(latencies), p99: percentile(latencies, 0.99) }
    }
    run.say(`warming up${suffix}`)
    for (let slice = 0; slice < WARM_SLICES; slice++) await measure(service.url, 64, requests)
    const { rows, calms } = await measureLoads(
      run,
      { of: 'connections', at: CONNECTIONS, name: suffix },
      async (connections) => {
        const own = await measure(service.url, connections, final)
        const plain = await measure(echo.url, connections, final)
        const early = await measure(service.url, connections, confirmed)
        return { own, early, plain }
      },
      (of) =>
        [['own', suffix] as const, ['early', `${suffix}, before it is final`] as const].flatMap(([kind, name]) => [
          toRow(
            `reads${name}`,
            of((repeat) => repeat[kind].rate),
            '/s',
            {
              'an echo server': of((repeat) => repeat[kind].rate / repeat.plain.rate),
            },
          ),
          toRow(
            `p50${name}`,
            of((repeat) => repeat[kind].p50),
            'ms',
          ),
          toRow(
            `p99${name}`,
            of((repeat) => repeat[kind].p99),
            'ms',
          ),
        ]),
    )
    return { bytes, rows, calms }
  })
}

const toSliceMs = ({ isQuick }: Run) => (isQuick ? 300 : 2_000)
