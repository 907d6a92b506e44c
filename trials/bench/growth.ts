import { median, withScope } from '@countersign/testing/stack'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { createTestWitness } from '../../services/coordinator/test/store/store.ts'
import { openQuery } from '../openQuery.ts'
import { completeProofs } from './completeProofs.ts'
import { fill } from './fill.ts'
import { signMany, toRequest } from './load.ts'
import { type Calm, compareLanes, describeRounds, type Report, type Row, type Run, toRow, withAt } from './report.ts'
import { type Bench, openBench } from './stack.ts'

const CONNECTIONS = [16, 64]
/** Real proofs, in one publication, whose rows are copied; as many again are still to be pinned or published. */
const REAL = 200
/** Proofs of each database that have a receipt of real size: as many in the large one as in the small. */
const SAMPLE = 10_000
/** The one server that serves both has what a small production server has. */
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' }
const FULL = { small: 10_000, large: 1_000_000, sliceMs: 1_500 }
const QUICK = { small: 2_000, large: 20_000, sliceMs: 300 }
const WARM_SLICES = 4

type Stores = Awaited<ReturnType<typeof openStores>> & { heavyUser: string }

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
    pipeline.publications.findNextNonce({ chainId: CHAIN_ID, account: `0x${'22'.repeat(20)}` }),
  'claim of an entropy sample, old ones pruned': ({ store }) => store.claimSamples([createTestWitness()], Date.now()),
  'sign-in begun long ago, expired ones deleted': ({ store }) =>
    store.takeLogin({ id: 'none', stateHash: '00'.repeat(32), now: Date.now() }),
  'newest transactions of a wallet with 1 % of all proofs': ({ store, heavyUser }) =>
    store.listTransactions({ userId: heavyUser, limit: 21, before: undefined }),
  'older transactions of that wallet': ({ store, heavyUser }) =>
    store.listTransactions({ userId: heavyUser, limit: 21, before: '1005000' }),
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
      const how = {
        what,
        of: `, ${what}`,
        first: 'the small one',
        connections: CONNECTIONS,
        sliceMs,
        warmSlices: WARM_SLICES,
      }
      const measured = await compareLanes(run, lanes, how)
      rows.push(...measured.rows)
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
        `SQL copies the rows that ${REAL} real proofs left in every table: one user for ten proofs and one wallet with 1 % of all, ` +
          `${REAL} proofs in a publication, ${REAL / 2} proofs still to pin and ${REAL / 2} to publish. All are at most a day old, and no ` +
          `claim of entropy and no finished job has been deleted. ${toText(SAMPLE)} proofs, evenly spread, have a receipt; those are read.`,
      ],
    }
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
    const startedAt = performance.now()
    await fill(query, { proofs, sample: SAMPLE }, (text) => say(`${toText(proofs)} proofs: ${text}`))
    const seconds = (performance.now() - startedAt) / 1000
    const open = await signMany(service, { ...service, count: REAL })
    await completeProofs(pipeline, open.slice(0, REAL / 2), { isPublished: false })
    // Otherwise it would fall into the run.
    await query('checkpoint')
    const [size] = await query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    const rows: Row[] = withAt(`${toText(proofs)} proofs`, [
      toRow('time to fill', seconds, 's'),
      toRow('size on disk', Number(size?.bytes) / 2 ** 20, 'MiB'),
    ])
    const withReceipt = `select slug from attestations where status = 'complete' and length(receipt_bytes) > 2`
    const slugs = await query<{ slug: string }>(withReceipt)
    return { ...service, reads: slugs.map(({ slug }) => toRequest(`GET /proof/${slug}`)), rows }
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
