import { queryPostgres } from '@countersign/testing'
import { LOG_ORIGINS } from '@countersign/testing/launcher'
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
/** One of this many proofs is polled during the measurement. */
const STEP = 25
/** Blocks to mine until events are final. */
const FINAL_BLOCKS = 100

/** Reads progress through the API only: with `--against`, the other checkout has its own schema. */
export async function benchPipeline(run: Run): Promise<Report[]> {
  const backlog = run.isQuick ? 200 : BACKLOG
  const oneByOne = run.isQuick ? 4 : ONE_BY_ONE
  const counts = { backlog, oneByOne }
  const rows = await measure(run, { prefix: '', counts })
  if (run.against) rows.push(...(await measure(run, { prefix: 'old ', checkout: run.against, counts })))
  rows.push(...(await measure(run, { prefix: 'logged ', hasLog: true, counts })))
  rows.push(...(await measure(run, { prefix: 'checkpoints ', hasLog: true, hasCheckpoints: true, counts })))
  return [
    {
      suite: 'pipeline',
      setting:
        `Time from signed to \`complete\`, receipts of version 2: a backlog of ${backlog} that the worker finds at startup, and ${oneByOne} one ` +
        `by one; embedded IPFS node, local chain that mines immediately. Logged: with a log and an event per signature. Checkpoints: with ` +
        `checkpoints of the log instead, as soon as a proof is pinned. Bytes in PostgreSQL per proof once all are final, with and without the job queue` +
        `${run.against ? `. Old: ${await readCommit(run.against)}` : ''}.`,
      columns: ['/s', 'gas', 'B', 'B of tables'],
      rows,
      ratios: [
        ['backlog', 'old backlog'],
        ['checkpoints backlog', 'logged backlog'],
      ],
    },
  ]
}

type Measurement = {
  prefix: string
  checkout?: string
  hasLog?: boolean
  hasCheckpoints?: boolean
  counts: { backlog: number; oneByOne: number }
}

function measure({ say }: Run, parameters: Measurement) {
  const { prefix, checkout, hasLog = false, hasCheckpoints = false } = parameters
  const { backlog, oneByOne } = parameters.counts
  return withScope(async (scope): Promise<Row[]> => {
    const { chain, ...deployed } = await startContract({ origins: LOG_ORIGINS })
    scope.add(chain, ({ stop }) => stop())
    const env = hasCheckpoints ? deployed.checkpointsEnv : deployed.env
    const service = await (await openBench(scope)).start({
      receipts: 2,
      ...(checkout && { checkout }),
      ...(hasLog && { log: {} }),
    })
    const readSizes = async () => {
      // Not through the store, which rejects the other checkout's schema.
      const [row] = await queryPostgres<{ all: string; tables: string }>(
        service.databaseUrl,
        `select pg_database_size(current_database()) as all, (select sum(pg_total_relation_size(oid)) from pg_class
           where relnamespace = 'public'::regnamespace and relkind = 'r') as tables`,
      )
      return { all: Number(row?.all), tables: Number(row?.tables) }
    }
    /** Waits until the answer for each proof contains the text. */
    const untilAll = async (slugs: readonly string[], text: string) => {
      const caller = scope.add(await connectCaller(service.url), async ({ close }) => close())
      for (const slug of slugs) {
        const request = toRequest(`GET /proof/${slug}`)
        const isDone = async () => (await caller.call(request)).includes(text)
        if (!(await until(isDone, LIMIT_MS, POLL_MS))) throw new Error(`timed out waiting for ${text} in proof ${slug}`)
      }
    }
    const restart = async (changes: Record<string, string>) => {
      await service.stack.stopCoordinator('SIGTERM')
      await service.stack.startCoordinator(changes)
      await service.stack.untilReady()
    }
    /** Measures `run`, which publishes `count` proofs. */
    const publish = async (count: number, run: () => Promise<void>) => {
      const before = await sumGas(chain.url)
      const start = performance.now()
      await run()
      const seconds = (performance.now() - start) / 1000
      return { '/s': [count / seconds], gas: [((await sumGas(chain.url)) - before) / count] }
    }

    say(`${prefix}publishing ${oneByOne} one by one`)
    await restart(env)
    const alone = await publish(oneByOne, async () => {
      for (let count = 1; count <= oneByOne; count++) {
        await untilAll(await signMany(service, { ...service, count: 1, connections: 1 }), COMPLETE)
      }
    })
    say(`${prefix}publishing a backlog of ${backlog}`)
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
/** Only a proof with a final event may be cached publicly. */
const FINAL = 'cache-control: public'

/** Gas used in all blocks. Only the publisher sends transactions during the measurement. */
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
