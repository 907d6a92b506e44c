import { median, withScope } from '@countersign/testing/stack'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { createTestWitness } from '../../services/coordinator/src/store/store.fake.ts'
import { openQuery } from '../openQuery.ts'
import { completeProofs } from './completeProofs.ts'
import { fill, HEAVY_USER, listSampleSlugs } from './fill.ts'
import { signMany, toRequest } from './load.ts'
import { type Calm, compareLanes, describeRounds, type Report, type Row, type Run, toRow, withAt } from './report.ts'
import { type Bench, openBench } from './stack.ts'

const CONNECTIONS = [16, 64]
/** Real receipts, which the sample shares among it. */
const RECEIPTS = 200
/** Proofs of each database that have a receipt of real size: as many in the large one as in the small. */
const SAMPLE = 10_000
/** The one server that serves both has what a small production server has. */
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' }
const FULL = { small: 10_000, large: 1_000_000, sliceMs: 1_500 }
const QUICK = { small: 2_000, large: 20_000, sliceMs: 300 }
const WARM_SLICES = 4

type Stores = Awaited<ReturnType<typeof openStores>>

const CHAIN_ID = 84_532
const WARM = 2
const REPEATS = 15

/** The statements that the service runs periodically, whatever the load: by name, with the store's own code. */
const periodic: Readonly<Record<string, (stores: Stores) => Promise<unknown>>> = {
  'sweep for proofs without a job (every 10 s)': ({ pipeline }) => pipeline.enqueueMissing({ now: Date.now() }),
  'open proofs (metrics)': ({ pipeline }) => pipeline.countOpenProofs(),
  'proofs due for publication': ({ pipeline }) => pipeline.publications.findDue(),
  'proofs overdue for publication': ({ pipeline }) => pipeline.publications.failOverdue({ pinnedBefore: 0 }),
  'publications that are not final': ({ pipeline }) => pipeline.publications.findOpen(CHAIN_ID),
  'next nonce of the publisher': ({ pipeline }) =>
    pipeline.publications.findNextNonce({ chainId: CHAIN_ID, account: `0x${'44'.repeat(20)}` }),
  'claim of an entropy sample, old ones pruned': ({ store }) => store.claimSamples([createTestWitness()], Date.now()),
  'sign-in begun long ago, expired ones deleted': ({ store }) =>
    store.takeLogin({ id: 'none', stateHash: '00'.repeat(32), now: Date.now() }),
  'newest transactions of a wallet with 1 % of all proofs': ({ store }) =>
    store.listTransactions({ userId: HEAVY_USER, limit: 21, before: undefined }),
  'older transactions of that wallet': ({ store }) =>
    store.listTransactions({ userId: HEAVY_USER, limit: 21, before: '1005000' }),
}

/** The same load on two databases of one server, of which one has a hundred times as many proofs, in turns. */
export function benchGrowth(run: Run): Promise<Report> {
  return withScope(async (scope) => {
    const { small, large, sliceMs } = run.isQuick ? QUICK : FULL
    const bench = await openBench(scope, SETTINGS)
    const sides = [await startSide(bench, small, run.say), await startSide(bench, large, run.say)] as const
    const ofLarge = `${toText(large)} proofs`
    run.say('periodic statements')
    const stores = [await openSide(sides[0]), await openSide(sides[1])] as const
    const rows = withAt(ofLarge, await timePeriodic(stores)).concat(sides.flatMap(({ rows }) => rows))
    for (const { store } of stores) await store.close()
    const calms: Calm<unknown>[] = []
    for (const [what, pick] of [
      ['signatures', ({ url, cookies }: Side) => ({ url, cookies })],
      ['proof reads', ({ url, reads }: Side) => ({ url, requests: reads })],
    ] as const) {
      const lanes = sides.map((side, index) => ({ name: index === 0 ? '' : ofLarge, load: pick(side) }))
      const how = { what, first: 'the small one', connections: CONNECTIONS, sliceMs, warmSlices: WARM_SLICES }
      const measured = await compareLanes(run, lanes, how)
      rows.push(
        ...measured.rows.map((row) => ({ ...row, name: row.name.startsWith('p') ? `${what}, ${row.name}` : row.name })),
      )
      calms.push(...measured.calms)
    }
    return {
      suite: 'growth',
      title: 'Growth',
      setting:
        `Two databases of one PostgreSQL server, ${toText(small)} and ${ofLarge}, each with its own enclave and coordinator, ` +
        `in turns; ${describeRounds(run, sliceMs, calms)}`,
      rows,
      notes: [
        'SQL makes rows in every table that a signing and its published proof leave behind: one user for ten proofs and one user ' +
          'with 1 % of all, a quote of 5,000 bytes for 50 signatures, 200 proofs in a publication, 100 proofs still to pin and 100 to ' +
          'publish. All are at most a day old, and no claim of entropy and no finished job has been deleted. ' +
          `${toText(SAMPLE)} proofs, evenly spread, have a receipt of real size (${RECEIPTS} real ones, shared); those are read.`,
      ],
    }
  })
}

type Side = Awaited<ReturnType<typeof startSide>>

async function startSide({ start }: Bench, proofs: number, say: (text: string) => void) {
  const service = await start()
  const { databaseUrl } = service
  const real = await signMany(service, { ...service, count: RECEIPTS })
  const { store, pipeline } = await openStores({ databaseUrl })
  const receipts = await completeProofs(pipeline, real)
  await store.close()
  const { query, close } = await openQuery(databaseUrl)
  try {
    const filling = { proofs, users: proofs / 10, receipts, sample: SAMPLE }
    const startedAt = performance.now()
    await fill(query, filling, (text) => say(`${toText(proofs)} proofs: ${text}`))
    const seconds = (performance.now() - startedAt) / 1000
    // Otherwise it would fall into the run.
    await query('checkpoint')
    const [size] = await query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    const rows: Row[] = withAt(`${toText(proofs)} proofs`, [
      toRow('time to fill', seconds, 's'),
      toRow('size on disk', Number(size?.bytes) / 2 ** 20, 'MiB'),
    ])
    return { ...service, reads: listSampleSlugs(filling).map((slug) => toRequest(`GET /proof/${slug}`)), rows }
  } finally {
    await close()
  }
}

const openSide = ({ databaseUrl }: Side) => openStores({ databaseUrl })

/** Both databases in turns: of each statement the median time on the large one, and the median of the ratios. */
async function timePeriodic([small, large]: readonly [Stores, Stores]): Promise<Row[]> {
  const rows: Row[] = []
  for (const [name, run] of Object.entries(periodic)) {
    const turns: { ms: number; ratio: number }[] = []
    for (let turn = 0; turn < WARM + REPEATS; turn++) {
      const smallMs = await time(() => run(small))
      const ms = await time(() => run(large))
      turns.push({ ms, ratio: ms / smallMs })
    }
    // The first read pages that a running service has at hand.
    const counted = turns.slice(WARM)
    const ratio = median(counted.map((each) => each.ratio))
    rows.push(toRow(name, median(counted.map(({ ms }) => ms)), 'ms', { 'the small one': ratio }))
  }
  return rows
}

async function time(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return performance.now() - start
}

const toText = (count: number) => count.toLocaleString('en-GB')
