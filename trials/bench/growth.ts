import { median, withScope } from '@countersign/testing/stack'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { createTestWitness } from '../../services/coordinator/test/store/store.ts'
import { openQuery } from '../openQuery.ts'
import { completeProofs } from './completeProofs.ts'
import { fill } from './fill.ts'
import { signMany, toRequest } from './load.ts'
import { describeTurns, measureLanes, type Report, type Run } from './report.ts'
import { type Bench, openBench } from './stack.ts'

const CONNECTIONS = [16, 64]
/** Real proofs in one publication, whose rows are copied. The same number again is left unpublished. */
const REAL = 200
/** Proofs with a receipt of real size, the same number in both databases. */
const SAMPLE = 10_000
/** Settings of a small production server. One server serves both databases. */
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' }
const FULL = { small: 10_000, large: 1_000_000, sliceMs: 1_500 }
const QUICK = { small: 2_000, large: 20_000, sliceMs: 300 }
const WARM_SLICES = 4

type Stores = Awaited<ReturnType<typeof openStores>> & { heavyUser: string }

const CHAIN_ID = 84_532
const SLOWEST = 'slowest ms'
const WARM = 2
const REPEATS = 15

/** The service's periodic statements, run with the store's code. */
const periodic: Readonly<Record<string, (stores: Stores) => Promise<unknown>>> = {
  'sweep for proofs without a job (every 10 s)': ({ pipeline }) => pipeline.enqueueMissing({ now: Date.now() }),
  'open proofs (metrics)': ({ pipeline }) => pipeline.countOpenProofs(),
  'proofs due for publication': ({ pipeline }) => pipeline.publications.findDue(),
  'proofs overdue for publication': ({ pipeline }) => pipeline.publications.failOverdue({ pinnedBefore: 0 }),
  'publications that are not final': ({ pipeline }) => pipeline.publications.findOpen(CHAIN_ID),
  'next nonce of the publisher': ({ pipeline }) =>
    pipeline.publications.findNextNonce({ chainId: CHAIN_ID, account: `0x${'22'.repeat(20)}` }),
  'claim an entropy sample, delete old ones': ({ store }) => store.claimSamples([createTestWitness()], Date.now()),
  'take a sign-in, delete expired ones': ({ store }) =>
    store.consumeLogin({ id: 'none', stateHash: '00'.repeat(32), now: Date.now() }),
  'newest transactions of a wallet with 1 % of all proofs': ({ store, heavyUser }) =>
    store.listTransactions({ userId: heavyUser, limit: 21, before: undefined }),
  'older transactions of that wallet': ({ store, heavyUser }) =>
    store.listTransactions({ userId: heavyUser, limit: 21, before: '1900' }),
}

/** Compares the same load, in turns, on two databases of one server, one with a hundred times as many proofs. */
export function benchGrowth(run: Run): Promise<Report[]> {
  return withScope(async (scope) => {
    const { small, large, sliceMs } = run.isQuick ? QUICK : FULL
    const bench = await openBench(scope, SETTINGS)
    const sides = [await startSide(bench, small, run.say), await startSide(bench, large, run.say)] as const
    run.say('timing the periodic statements')
    const stores = [await openSide(sides[0]), await openSide(sides[1])] as const
    const statements = await timePeriodic(stores)
    for (const { store } of stores) await store.close()
    const how = { connections: CONNECTIONS, sliceMs, warmSlices: WARM_SLICES }
    const signed = await measureLanes(
      run,
      sides.map(({ name, ...load }) => ({ name, load })),
      how,
    )
    const read = await measureLanes(
      run,
      sides.map(({ name, urls, reads }) => ({ name, load: { urls, requests: reads } })),
      how,
    )
    const rows = sides.map(({ name, cells }, index) => {
      const reads = Object.entries(read[index]?.cells ?? {}).map(([column, values]) => [`reads ${column}`, values])
      return { name, cells: { ...cells, ...statements[index], ...signed[index]?.cells, ...Object.fromEntries(reads) } }
    })
    return [
      {
        suite: 'growth',
        setting:
          `Two databases of one PostgreSQL, with an enclave and a coordinator each: signatures and proof reads a second (@) and p99 in ms, ` +
          `the slowest of ${Object.keys(periodic).length} periodic statements, and the bytes of each proof on disk; ${describeTurns(run, sliceMs)}.`,
        columns: [
          ...CONNECTIONS.flatMap((at) => [`@${at}`, `p99@${at}`, `reads @${at}`, `reads p99@${at}`]),
          SLOWEST,
          'B',
        ],
        rows,
        ratios: [[sides[1].name, sides[0].name]],
      },
    ]
  })
}

type Side = Awaited<ReturnType<typeof startSide>>

async function startSide({ start }: Bench, proofs: number, say: (text: string) => void) {
  const service = await start()
  const { databaseUrl } = service
  const { store, pipeline } = await openStores({ databaseUrl })
  const { query, close } = await openQuery(databaseUrl)
  try {
    await completeProofs(pipeline, await signMany(service, { ...service, count: REAL }))
    await fill(query, { proofs, sample: SAMPLE }, (text) => say(`${toText(proofs)} proofs: ${text}`))
    const open = await signMany(service, { ...service, count: REAL })
    await completeProofs(pipeline, open.slice(0, REAL / 2), { isPublished: false })
    // Otherwise a checkpoint would fall into the measurement.
    await query('checkpoint')
    const [size] = await query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    const withReceipt = `select slug from proofs join receipts using (signing_id) where status = 'complete' and length(bytes) > 3`
    const slugs = await query<{ slug: string }>(withReceipt)
    const reads = slugs.map(({ slug }) => toRequest(`GET /proof/${slug}`))
    return { ...service, name: `${toText(proofs)} proofs`, reads, cells: { B: [Number(size?.bytes) / proofs] } }
  } finally {
    await close()
    await store.close()
  }
}

async function openSide({ databaseUrl }: Side): Promise<Stores> {
  const { query, close } = await openQuery(databaseUrl)
  const [heavy] = await query<{ id: string }>('select user_id as id from wallets order by created_at, id limit 1')
  await close()
  return { ...(await openStores({ databaseUrl })), heavyUser: heavy?.id ?? '' }
}

/** Times each statement on each database, in turns, in ms. Adds the statement that is slowest on the large database. */
async function timePeriodic(sides: readonly Stores[]): Promise<Record<string, number[]>[]> {
  const found = sides.map(() => ({}) as Record<string, number[]>)
  for (const [name, run] of Object.entries(periodic)) {
    for (let turn = 0; turn < WARM + REPEATS; turn++) {
      for (const [index, side] of sides.entries()) {
        const ms = await time(() => run(side))
        // The first runs read pages that a running service has cached.
        if (turn < WARM) continue
        const times = found[index] as Record<string, number[]>
        times[name] = [...(times[name] ?? []), ms]
      }
    }
  }
  const [slowest = ''] = Object.entries(found.at(-1) ?? {}).toSorted(([, a], [, b]) => median(b) - median(a))[0] ?? []
  return found.map((times) => ({ ...times, [SLOWEST]: times[slowest] ?? [] }))
}

async function time(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return performance.now() - start
}

const toText = (count: number) => count.toLocaleString('en-GB')
