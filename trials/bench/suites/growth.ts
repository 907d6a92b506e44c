import { median, percentile, withScope } from '@countersign/testing/stack'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { openQuery } from '../../openQuery.ts'
import { completeProofs } from '../completeProofs.ts'
import { fill, listSampleSlugs } from '../growth/fill.ts'
import { timePeriodic } from '../growth/periodic.ts'
import { applyLoad, toGet } from '../load.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import { type Report, type Row, type Run, toRow, withAt } from '../report.ts'
import { prepareSignings, QUOTE_MS, signMany } from '../signer.ts'
import { type Bench, type Measured, openBench } from '../stack.ts'

/** With so many slices of each in a run: some 1,200 answers or more, of which a dozen take longer than the p99. */
const LOADS = [
  { connections: 16, slices: 4 },
  { connections: 64, slices: 2 },
]
/** Real receipts, which the sample shares among it. */
const RECEIPTS = 200
/** Proofs of each database that have a receipt of real size, evenly spread: as many in the large one as in the small. */
const SAMPLE = 10_000
/** More signatures than any machine makes in a second. */
const MAX_PER_SECOND = 4_000
/** The one server that serves both has what a small production server has. */
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' }

type Sizes = { small: number; large: number; sliceMs: number; warmSlices: number }
/** In slices, because whatever changes on the machine then changes for both. */
const FULL: Sizes = { small: 10_000, large: 1_000_000, sliceMs: 1_500, warmSlices: 4 }
const QUICK: Sizes = { small: 2_000, large: 20_000, sliceMs: 300, warmSlices: 1 }

/** A service on its database, and reads of proofs that have a receipt. */
type Side = Measured & { proofs: number; reads: Buffer[]; fillSeconds: number; bytes: number }
type Sides = readonly [small: Side, large: Side]
type Measure = (side: Side, connections: number, sliceMs: number) => Promise<number[]>
/** Of the small side, and of the large one. */
type Compared = readonly { p50: number; p99: number }[]

/**
 * The same load on two databases of one server, of which one has a hundred times as many proofs: signing and `GET /proof/:slug`, in
 * turns. Then the statements that the service runs periodically.
 */
export function benchGrowth({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async (scope) => {
    const sizes = isQuick ? QUICK : FULL
    const bench = await openBench(scope, SETTINGS)
    const sides: Sides = [await startSide(bench, sizes.small, say), await startSide(bench, sizes.large, say)]
    const [, large] = sides
    // Otherwise the first one would fall into the run.
    await ask(large, 'checkpoint')
    say('periodic statements')
    const periodic = await timeSides(sides)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const [name, measure] of Object.entries({ signing: measureSigning, 'proof reads': measureReads })) {
      say(`${name}: warming up`)
      for (let slice = 0; slice < sizes.warmSlices; slice++) {
        for (const side of sides) await measure(side, 64, sizes.sliceMs)
      }
      for (const { connections, slices } of LOADS) {
        say(`${name}, ${connections} connections`)
        const calm = await repeatCalmly({ rounds, isQuick }, (round) =>
          compare(sides, (side) => measure(side, connections, sizes.sliceMs), { slices, round }),
        )
        calms.push(calm)
        rows.push(...toRows(`${name}, ${connections} connections`, sizes, calm.repeats))
      }
    }
    const ofLarge = periodic.map(({ name, largeMs, ratio }) => toRow(name, largeMs, 'ms', { 'the small one': ratio }))
    rows.push(...withAt(sizes.large, 'proofs', ofLarge))
    for (const side of sides) {
      const [counted] = await ask<{ count: string }>(side, 'select count(*) from attestations')
      rows.push(
        ...withAt(side.proofs, 'proofs', [
          toRow('time to fill', side.fillSeconds, 's'),
          toRow('size on disk', side.bytes / 2 ** 20, 'MiB'),
          toRow('proofs in the end, with those that were signed meanwhile', Number(counted?.count), 'proofs'),
        ]),
      )
    }
    return {
      suite: 'growth',
      title: 'Growth',
      setting:
        `Two databases of one PostgreSQL server, ${toText(sizes.small)} and ${toText(sizes.large)} stored proofs, each with its own ` +
        `enclave (quotes of ${QUOTE_MS} ms) and coordinator, in turns; p99 over slices of ${sizes.sliceMs} ms, median of ` +
        `${rounds} such runs and of the ratios within each, ${describeCalm(calms)}.`,
      rows,
      notes: [
        'Rows made by SQL in every table that a signing and its published proof leave behind: one user for ten proofs and one user ' +
          'with 1 % of all, one session each, a quote of 5,000 bytes for 50 signatures, 200 proofs in a publication, 100 proofs still to pin ' +
          'and 100 to publish. All are at most a day old, and no claim of entropy and no finished job has been deleted: the most there ' +
          `can be. ${toText(SAMPLE)} proofs, evenly spread, have a receipt of real size (${RECEIPTS} real ones, shared); those are read. ` +
          'The receipts of the others are empty, which makes the large database smaller than a real one by their bytes alone.',
      ],
    }
  })
}

async function startSide({ start }: Bench, proofs: number, say: (text: string) => void): Promise<Side> {
  const service = await start()
  const real = await signMany(service, { ...service, count: RECEIPTS })
  const { store, pipeline } = await openStores({ databaseUrl: service.databaseUrl })
  const receipts = await completeProofs(pipeline, real)
  await store.close()
  const { query, close } = await openQuery(service.databaseUrl)
  try {
    const filling = { proofs, users: proofs / 10, receipts, sample: SAMPLE }
    const startedAt = performance.now()
    await fill(query, filling, (text) => say(`${toText(proofs)} proofs: ${text}`))
    const fillSeconds = (performance.now() - startedAt) / 1000
    const [size] = await query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    const reads = listSampleSlugs(filling).map((slug) => toGet(`/proof/${slug}`))
    return { ...service, proofs, reads, fillSeconds, bytes: Number(size?.bytes) }
  } finally {
    await close()
  }
}

async function ask<Row>({ databaseUrl }: Side, text: string): Promise<Row[]> {
  const { query, close } = await openQuery(databaseUrl)
  try {
    return await query<Row>(text)
  } finally {
    await close()
  }
}

async function timeSides([small, large]: Sides) {
  const stores = {
    small: await openStores({ databaseUrl: small.databaseUrl }),
    large: await openStores({ databaseUrl: large.databaseUrl }),
  }
  try {
    return await timePeriodic(stores.small, stores.large)
  } finally {
    await stores.small.store.close()
    await stores.large.store.close()
  }
}

const measureSigning: Measure = async ({ url, cookies }, connections, sliceMs) => {
  const next = prepareSignings({ cookies, connections, count: Math.ceil((MAX_PER_SECOND * sliceMs) / 1000) })
  return (await applyLoad({ url, connections, sliceMs, next })).latencies
}

const measureReads: Measure = async ({ url, reads }, connections, sliceMs) => {
  const next = () => reads[Math.floor(Math.random() * reads.length)] ?? Buffer.alloc(0)
  return (await applyLoad({ url, connections, sliceMs, next })).latencies
}

/** One run: slices of both in turns, and of each the latencies of all its slices together. */
async function compare(
  sides: Sides,
  measure: (side: Side) => Promise<number[]>,
  { slices, round }: { slices: number; round: number },
): Promise<Compared> {
  const latencies = new Map<Side, number[]>(sides.map((side) => [side, []]))
  for (let slice = 0; slice < slices; slice++) {
    // Neither is always the first.
    for (const side of (round + slice) % 2 === 0 ? sides : sides.toReversed()) {
      latencies.get(side)?.push(...(await measure(side)))
    }
  }
  return [...latencies.values()].map((values) => ({ p50: percentile(values, 0.5), p99: percentile(values, 0.99) }))
}

function toRows(name: string, sizes: Sizes, repeats: readonly Compared[]): Row[] {
  return (['p50', 'p99'] as const).flatMap((share) => {
    const label = `${name}, ${share}`
    const of = (side: 0 | 1) => median(repeats.map((repeat) => repeat[side]?.[share] ?? Number.NaN))
    const ratio = median(
      repeats.map(([small, large]) => (large?.[share] ?? Number.NaN) / (small?.[share] ?? Number.NaN)),
    )
    return [
      ...withAt(sizes.small, 'proofs', [toRow(label, of(0), 'ms')]),
      ...withAt(sizes.large, 'proofs', [toRow(label, of(1), 'ms', { 'the small one': ratio })]),
    ]
  })
}

function toText(count: number): string {
  return count.toLocaleString('en-GB')
}
