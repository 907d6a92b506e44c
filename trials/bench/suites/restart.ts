import { startBackend } from '@countersign/testing'
import { createTx, createUser, waitForProofs, withScope } from '@countersign/testing/stack'
import { startContract } from '../../../contracts/startContract.ts'
import { type Report, type Run, toRow } from '../report.ts'

const BACKLOG = 1_000
const AT_ONCE = 100
const PUBLISH_MS = 600_000

/**
 * Restarts with a backlog: the coordinator is killed with signatures answered whose proofs are not published, because the chain was
 * out of reach, and is started again, with the chain. Until `GET /health/ready` says so, and until every proof is complete.
 */
export function benchRestart({ isQuick }: Run): Promise<Report> {
  const backlog = isQuick ? AT_ONCE : BACKLOG
  return withScope(async ({ add }) => {
    const { chain, env } = await startContract()
    add(chain, ({ stop }) => stop())
    // Nobody listens at port 1.
    const isolated = { ...env, RPC_URL: 'http://127.0.0.1:1' }
    const backend = await startBackend({ hasCompileCache: false, env: isolated })
    add(backend, ({ stop }) => stop())
    const user = createUser(backend)
    await user.signIn('alice')
    const slugs: string[] = []
    while (slugs.length < backlog) {
      const asked = Array.from({ length: AT_ONCE }, (_, index) => user.sign(createTx(slugs.length + index)))
      for (const answer of await Promise.all(asked)) {
        if (answer.status !== 200) throw new Error(`not signed: ${answer.status}`)
        slugs.push(((await answer.json()) as { slug: string }).slug)
      }
    }
    await backend.stopCoordinator('SIGKILL')
    const start = performance.now()
    const starting = backend.startCoordinator({ RPC_URL: chain.url })
    await backend.untilReady()
    const readyMs = performance.now() - start
    await starting
    const read = await waitForProofs({ url: backend.url, slugs, timeoutMs: PUBLISH_MS })
    const complete = read.filter(({ proof }) => proof?.status === 'complete').length
    if (complete !== backlog) throw new Error(`${complete} of ${backlog} proofs are complete`)
    return {
      suite: 'restart',
      title: 'Restart with a backlog',
      setting:
        `The coordinator is killed with ${backlog} signatures answered whose proofs are not published, because the chain was out ` +
        'of reach, and is started again; from its start.',
      rows: [
        toRow('ready, on PostgreSQL', readyMs / 1000, 's'),
        toRow('all complete, on PostgreSQL', (performance.now() - start) / 1000, 's'),
      ],
    }
  })
}
