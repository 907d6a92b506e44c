import { withScope } from '@countersign/testing/stack'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { completeProofs } from './completeProofs.ts'
import { signMany, toRequest } from './load.ts'
import { type Calm, compareLanes, describeRounds, type Report, type Row, type Run } from './report.ts'
import { openBench, startProgram } from './stack.ts'

const CONNECTIONS = [1, 64]
/** Of each state. */
const PROOFS = 100
const WARM_SLICES = 4

/** `GET /proof/:slug` of complete proofs with their receipts, in turns with an echo server that answers as many bytes. */
export function benchReads(run: Run): Promise<Report> {
  const sliceMs = run.isQuick ? 300 : 2_000
  const count = run.isQuick ? 10 : PROOFS
  return withScope(async (scope) => {
    const bench = await openBench(scope)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    const sizes: string[] = []
    for (const receipts of [1, 2] as const) {
      const service = await bench.start({ receipts })
      const slugs = await signMany(service, { ...service, count: 2 * count })
      const { store, pipeline } = await openStores({ databaseUrl: service.databaseUrl })
      await completeProofs(pipeline, slugs.slice(0, count))
      await completeProofs(pipeline, slugs.slice(count), { isFinal: false })
      await store.close()
      const requests = slugs.map((slug) => toRequest(`GET /proof/${slug}`))
      const bytes = (await (await fetch(`${service.url}/proof/${slugs[0]}`)).arrayBuffer()).byteLength
      sizes.push(bytes.toLocaleString('en-GB'))
      const echo = await startProgram(scope, 'echo server', 'trials/bench/echoServer.ts', { BODY_BYTES: String(bytes) })
      const lanes = [
        { name: '', load: { url: service.url, requests: requests.slice(0, count) } },
        { name: 'an echo server', load: { url: echo.url, requests }, reference: 'rate' as const },
        { name: 'before it is final', load: { url: service.url, requests: requests.slice(count) } },
      ]
      const of = receipts === 1 ? '' : ', receipts of version 2'
      const how = {
        what: `reads${of}`,
        of,
        first: 'a final one',
        connections: CONNECTIONS,
        sliceMs,
        warmSlices: WARM_SLICES,
      }
      const measured = await compareLanes(run, lanes, how)
      rows.push(...measured.rows)
      calms.push(...measured.calms)
    }
    return {
      suite: 'reads',
      title: 'Reading proofs',
      setting:
        `\`GET /proof/:slug\` on PostgreSQL, complete proofs with their receipts, ${sizes.join(' and ')} bytes each, in turns with an ` +
        `echo server of Node that answers as many; until its event is final, every read looks up the proof's state; ` +
        describeRounds(run, sliceMs, calms),
      rows,
    }
  })
}
