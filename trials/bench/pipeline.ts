import { withScope } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { openQuery } from '../openQuery.ts'
import { signMany } from './load.ts'
import { type Report, type Run, toRow } from './report.ts'
import { openBench } from './stack.ts'

const BACKLOG = 5_000
const ONE_BY_ONE = 40
const POLL_MS = 20

/**
 * From signed to `complete`: one proof after the other, each published before the next is signed, and a backlog that the worker finds
 * when it starts. PostgreSQL, the embedded IPFS node, and an EVM node that mines at once, all on this machine.
 */
export function benchPipeline({ isQuick, say }: Run): Promise<Report> {
  return withScope(async (scope) => {
    const backlog = isQuick ? 200 : BACKLOG
    const oneByOne = isQuick ? 4 : ONE_BY_ONE
    const { chain, env } = await startContract()
    scope.add(chain, ({ stop }) => stop())
    const service = await (await openBench(scope)).start()
    const { query } = scope.add(await openQuery(service.databaseUrl), ({ close }) => close())
    const countComplete = async () => {
      const [row] = await query<{ count: string }>(`select count(*) from attestations where status = 'complete'`)
      return Number(row?.count)
    }
    const untilComplete = async (count: number) => {
      while ((await countComplete()) < count) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    /** The rate, and the gas of each. */
    const measure = async (count: number, publish: () => Promise<void>) => {
      const before = await sumGas(chain.url)
      const start = performance.now()
      await publish()
      const seconds = (performance.now() - start) / 1000
      return { rate: count / seconds, gas: ((await sumGas(chain.url)) - before) / count }
    }
    const restart = async (changes: Record<string, string>) => {
      await service.stack.stopCoordinator('SIGTERM')
      await service.stack.startCoordinator(changes)
      await service.stack.untilReady()
    }
    const worker = { ...env, PIPELINE_DELAY_MS: '0' }

    say(`${oneByOne} one by one`)
    await restart(worker)
    const alone = await measure(oneByOne, async () => {
      for (let count = 1; count <= oneByOne; count++) {
        await signMany(service, { ...service, count: 1, connections: 1 })
        await untilComplete(count)
      }
    })
    say(`${backlog} by the worker`)
    await restart({ ...worker, WORKER: 'off' })
    await signMany(service, { ...service, count: backlog })
    const together = await measure(backlog, async () => {
      await restart(worker)
      await untilComplete(oneByOne + backlog)
    })
    return {
      suite: 'pipeline',
      title: 'Publishing',
      setting:
        `From signed to \`complete\`: PostgreSQL, embedded IPFS node, local chain that mines at once; ${backlog} proofs by the worker, ` +
        `from its start, and ${oneByOne} one by one.`,
      rows: [
        toRow('proofs, by the worker', together.rate, '/s', { 'one by one': together.rate / alone.rate }),
        toRow('proofs, one by one', alone.rate, '/s'),
        toRow('gas, by the worker', together.gas, 'each', { 'one by one': together.gas / alone.gas }),
        toRow('gas, one by one', alone.gas, 'each'),
      ],
    }
  })
}

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
