import { askPostgres } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { until } from '../until.ts'
import { readCommit } from './describeMachine.ts'
import { connectCaller, signMany, toRequest } from './load.ts'
import type { Report, Row, Run } from './report.ts'
import { openBench } from './stack.ts'

const BACKLOG = 5_000
const ONE_BY_ONE = 40
const POLL_MS = 20
const LIMIT_MS = 600_000
/** One proof in so many is polled while the clock runs. */
const STEP = 25
/** On top of the newest one. */
const FINAL_BLOCKS = 100

/** A service and its worker are known by its API only: with `--against` another checkout has a schema of its own. */
export async function benchPipeline(run: Run): Promise<Report[]> {
  const backlog = run.isQuick ? 200 : BACKLOG
  const oneByOne = run.isQuick ? 4 : ONE_BY_ONE
  const rows = await measure(run, '', undefined, { backlog, oneByOne })
  if (run.against) rows.push(...(await measure(run, 'old ', run.against, { backlog, oneByOne })))
  return [
    {
      suite: 'pipeline',
      setting:
        `From signed to \`complete\`, receipts of version 2: a backlog of ${backlog} that the worker finds at its start, and ${oneByOne} one ` +
        `by one; embedded IPFS node, local chain that mines at once. Bytes in PostgreSQL for each when all are final, and without the job queue` +
        `${run.against ? `. Old: ${await readCommit(run.against)}` : ''}.`,
      columns: ['/s', 'gas', 'B', 'B of tables'],
      rows,
      ratios: [['backlog', 'old backlog']],
    },
  ]
}

type Counts = { backlog: number; oneByOne: number }

function measure({ say }: Run, prefix: string, checkout: string | undefined, { backlog, oneByOne }: Counts) {
  return withScope(async (scope): Promise<Row[]> => {
    const { chain, env } = await startContract()
    scope.add(chain, ({ stop }) => stop())
    const service = await (await openBench(scope)).start({ receipts: 2, ...(checkout && { checkout }) })
    const readSizes = async () => {
      // Not by the store, which takes no schema but its own.
      const [row] = await askPostgres<{ all: string; tables: string }>(
        service.databaseUrl,
        `select pg_database_size(current_database()) as all, (select sum(pg_total_relation_size(oid)) from pg_class
           where relnamespace = 'public'::regnamespace and relkind = 'r') as tables`,
      )
      return { all: Number(row?.all), tables: Number(row?.tables) }
    }
    /** Until the answer for each has this text. */
    const untilAll = async (slugs: readonly string[], text: string) => {
      const caller = scope.add(await connectCaller(service.url), async ({ close }) => close())
      for (const slug of slugs) {
        const request = toRequest(`GET /proof/${slug}`)
        const isDone = async () => (await caller.call(request)).includes(text)
        if (!(await until(isDone, LIMIT_MS, POLL_MS))) throw new Error(`${slug} has not become ${text}`)
      }
    }
    const restart = async (changes: Record<string, string>) => {
      await service.stack.stopCoordinator('SIGTERM')
      await service.stack.startCoordinator(changes)
      await service.stack.untilReady()
    }
    /** Signs before or within the time that counts. */
    const publish = async (count: number, run: () => Promise<void>) => {
      const before = await sumGas(chain.url)
      const start = performance.now()
      await run()
      const seconds = (performance.now() - start) / 1000
      return { '/s': [count / seconds], gas: [((await sumGas(chain.url)) - before) / count] }
    }

    say(`${prefix}${oneByOne} one by one`)
    await restart(env)
    const alone = await publish(oneByOne, async () => {
      for (let count = 1; count <= oneByOne; count++) {
        await untilAll(await signMany(service, { ...service, count: 1, connections: 1 }), COMPLETE)
      }
    })
    say(`${prefix}${backlog} by the worker`)
    await restart({ ...env, WORKER: 'off' })
    const before = await readSizes()
    const slugs = await signMany(service, { ...service, count: backlog })
    const together = await publish(backlog, async () => {
      await restart(env)
      await untilAll(
        slugs.filter((_, index) => index % STEP === 0 || index === backlog - 1),
        COMPLETE,
      )
    })
    await untilAll(slugs, COMPLETE)
    await chain.mine(FINAL_BLOCKS)
    await untilAll(slugs, FINAL)
    const after = await readSizes()
    const bytes = { B: [(after.all - before.all) / backlog], 'B of tables': [(after.tables - before.tables) / backlog] }
    return [
      { name: `${prefix}backlog`, cells: { ...together, ...bytes } },
      { name: `${prefix}one by one`, cells: alone },
    ]
  })
}

const COMPLETE = '"status":"complete"'
/** Only caches may keep a proof whose event is final. */
const FINAL = 'cache-control: public'

/** Gas of all blocks of the chain. Only the publisher sends transactions while proofs are published. */
async function sumGas(url: string): Promise<number> {
  const call = async (method: string, params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return ((await response.json()) as { result: never }).result
  }
  const head = Number(await call('eth_blockNumber', []))
  let gas = 0
  for (let number = 0; number <= head; number++) {
    const block: { gasUsed: string } = await call('eth_getBlockByNumber', [`0x${number.toString(16)}`, false])
    gas += Number(block.gasUsed)
  }
  return gas
}
