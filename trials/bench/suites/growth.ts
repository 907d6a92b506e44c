import { type Backend, startPostgres } from '@countersign/testing'
import { median, percentile, type Scope, withScope } from '@countersign/testing/stack'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { openQuery } from '../../openQuery.ts'
import { applyLoad } from '../applyLoad.ts'
import { completeProofs } from '../completeProofs.ts'
import { toGet } from '../connectCaller.ts'
import { explainStatements } from '../growth/explain.ts'
import { fill, listSampleSlugs } from '../growth/fill.ts'
import { timePeriodic } from '../growth/periodic.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { prepareSignings, signInAll, signMany } from '../signer.ts'
import { type Program, QUOTE_MS, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'

/** With so many slices of each in a run: some 1,200 answers or more, of which a dozen take longer than the p99. */
const LOADS = [
  { connections: 16, slices: 4 },
  { connections: 64, slices: 2 },
]
const USERS = 8
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

type Side = {
  name: 'small' | 'large'
  proofs: number
  databaseUrl: string
  stack: Backend
  cookies: string[]
  reads: Buffer[]
  slugs: string[]
  fillSeconds: number
  bytes: number
}

/**
 * The same load on two databases of one server, of which one has a hundred times as many proofs: signing and `GET /proof/:slug`, in
 * turns. Then the statements that the service runs periodically, and the plans of the database for them.
 */
export function benchGrowth({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async (scope) => {
    const sizes = isQuick ? QUICK : FULL
    const postgres = scope.add(await startPostgres({ settings: SETTINGS }), ({ stop }) => stop())
    const satellite = scope.add(await startSatelliteServer(), stopProgram)
    const start = (name: Side['name'], proofs: number) =>
      startSide(scope, { name, proofs, satellite, createDatabase: postgres.createDatabase, say })
    const small = await start('small', sizes.small)
    const large = await start('large', sizes.large)
    await checkpoint(large.databaseUrl)

    say('periodic statements')
    const periodic = await timeSides(small, large)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const [name, measure] of Object.entries({ signing: measureSigning, 'proof reads': measureReads })) {
      say(`${name}: warming up`)
      for (let slice = 0; slice < sizes.warmSlices; slice++) {
        for (const side of [small, large]) await measure(side, 64, sizes.sliceMs)
      }
      for (const { connections, slices } of LOADS) {
        say(`${name}, ${connections} connections`)
        const calm = await repeatCalmly({ rounds, isQuick }, (round) =>
          compare({ small, large, connections, slices, measure, sliceMs: sizes.sliceMs, round }),
        )
        calms.push(calm)
        rows.push(...toRows({ name, connections, sizes, repeats: calm.repeats }))
      }
    }
    const counts = { small: await countProofs(small), large: await countProofs(large) }
    rows.push(
      ...periodic.map(({ name, largeMs, ratio }) => ({
        name,
        at: toAt(sizes.large),
        value: largeMs,
        unit: 'ms',
        ratios: [{ value: ratio, to: 'the small one' }],
      })),
      ...[small, large].flatMap(({ name, proofs, fillSeconds, bytes }) => [
        { name: 'time to fill', at: toAt(proofs), value: fillSeconds, unit: 's' },
        { name: 'size on disk', at: toAt(proofs), value: bytes / 2 ** 20, unit: 'MiB' },
        {
          name: 'proofs in the end, with those that were signed meanwhile',
          at: toAt(proofs),
          value: counts[name],
          unit: 'proofs',
        },
      ]),
    )
    say('plans')
    const plans = {
      small: await explainStatements(small.databaseUrl, small.slugs[0] ?? ''),
      large: await explainStatements(large.databaseUrl, large.slugs[0] ?? ''),
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
      details: { plans, periodic },
    }
  })
}

async function startSide(
  { add }: Scope,
  parameters: {
    name: Side['name']
    proofs: number
    satellite: Program
    createDatabase: () => Promise<string>
    say: (text: string) => void
  },
): Promise<Side> {
  const { name, proofs, satellite, createDatabase, say } = parameters
  const databaseUrl = await createDatabase()
  const stack = add(await startStack({ satellite, databaseUrl, limit: 256, users: USERS }), ({ stop }) => stop())
  const cookies = await signInAll(stack, USERS)
  const real = await signMany(stack, { cookies, count: RECEIPTS })
  const { store, pipeline } = await openStores({ databaseUrl })
  const receipts = await completeProofs(pipeline, real)
  await store.close()
  const { query, close } = await openQuery(databaseUrl)
  try {
    const filling = { proofs, users: proofs / 10, receipts, sample: SAMPLE }
    const startedAt = performance.now()
    await fill(query, filling, (text) => say(`${name}: ${text}`))
    const fillSeconds = (performance.now() - startedAt) / 1000
    const [size] = await query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    const slugs = listSampleSlugs(filling)
    const reads = slugs.map((slug) => toGet(`/proof/${slug}`))
    return { name, proofs, databaseUrl, stack, cookies, reads, slugs, fillSeconds, bytes: Number(size?.bytes) }
  } finally {
    await close()
  }
}

/** Otherwise the first one would fall into the run. */
async function checkpoint(databaseUrl: string) {
  const { query, close } = await openQuery(databaseUrl)
  await query('checkpoint')
  await close()
}

async function countProofs({ databaseUrl }: Side): Promise<number> {
  const { query, close } = await openQuery(databaseUrl)
  const [row] = await query<{ count: string }>('select count(*) from attestations')
  await close()
  return Number(row?.count)
}

async function timeSides(small: Side, large: Side) {
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

type Measure = (side: Side, connections: number, sliceMs: number) => Promise<number[]>

async function measureSigning({ stack, cookies }: Side, connections: number, sliceMs: number): Promise<number[]> {
  const next = prepareSignings({ cookies, connections, count: Math.ceil((MAX_PER_SECOND * sliceMs) / 1000) })
  return (await applyLoad({ url: stack.address, connections, sliceMs, next })).latencies
}

async function measureReads({ stack, reads }: Side, connections: number, sliceMs: number): Promise<number[]> {
  const next = () => reads[Math.floor(Math.random() * reads.length)] ?? Buffer.alloc(0)
  return (await applyLoad({ url: stack.address, connections, sliceMs, next })).latencies
}

type Compared = Record<Side['name'], { p50: number; p99: number; count: number }>

/** One run: slices of both in turns, and of each the latencies of all its slices together. */
async function compare(parameters: {
  small: Side
  large: Side
  connections: number
  slices: number
  sliceMs: number
  measure: Measure
  round: number
}): Promise<Compared> {
  const { small, large, connections, slices, sliceMs, measure, round } = parameters
  const latencies = { small: [] as number[], large: [] as number[] }
  for (let slice = 0; slice < slices; slice++) {
    // Neither is always the first.
    const order = (round + slice) % 2 === 0 ? [small, large] : [large, small]
    for (const side of order) latencies[side.name].push(...(await measure(side, connections, sliceMs)))
  }
  const summarise = (values: number[]) => ({
    p50: percentile(values, 0.5),
    p99: percentile(values, 0.99),
    count: values.length,
  })
  return { small: summarise(latencies.small), large: summarise(latencies.large) }
}

function toRows(parameters: { name: string; connections: number; sizes: Sizes; repeats: readonly Compared[] }): Row[] {
  const { name, connections, sizes, repeats } = parameters
  return (['p50', 'p99'] as const).flatMap((share) => {
    const label = `${name}, ${connections} connections, ${share}`
    const of = (side: Side['name']) => median(repeats.map((repeat) => repeat[side][share]))
    const ratio = median(repeats.map(({ small, large }) => large[share] / small[share]))
    return [
      { name: label, at: toAt(sizes.small), value: of('small'), unit: 'ms' },
      {
        name: label,
        at: toAt(sizes.large),
        value: of('large'),
        unit: 'ms',
        ratios: [{ value: ratio, to: 'the small one' }],
      },
    ]
  })
}

function toAt(proofs: number) {
  return { value: proofs, of: 'proofs' }
}

function toText(count: number): string {
  return count.toLocaleString('en-GB')
}
