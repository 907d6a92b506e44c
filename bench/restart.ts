import { createTx, createUser, startBackend } from '../services/coordinator/test/backend.ts'
import { startContract } from '../services/coordinator/test/contract.ts'

const BACKLOG = 1_000
const AT_ONCE = 100

/**
 * Restarts with a backlog: the coordinator is killed with 1,000 signatures answered whose proofs are not published, because the chain was
 * out of reach, and is started again, with the chain. Until `GET /health/ready` says so, and until every proof is complete.
 */
export async function benchRestart() {
  console.log(`${BACKLOG} proofs under way; Node ${process.version} on ${process.arch}`)
  for (const kind of ['postgres', 'pglite'] as const) {
    const { chain, env } = await startContract()
    // Nobody listens at port 1.
    const backend = await startBackend({ kind, env: { ...env, RPC_URL: 'http://127.0.0.1:1' } })
    try {
      const user = createUser(backend)
      await user.signIn('alice')
      const slugs: string[] = []
      while (slugs.length < BACKLOG) {
        const first = slugs.length
        const answers = await Promise.all(
          Array.from({ length: AT_ONCE }, (_, index) => user.sign(createTx(first + index))),
        )
        for (const answer of answers) {
          if (answer.status !== 200) throw new Error(`not signed: ${answer.status}`)
          slugs.push(((await answer.json()) as { slug: string }).slug)
        }
      }
      await backend.stopCoordinator('SIGKILL')
      const start = performance.now()
      const starting = backend.startCoordinator({ RPC_URL: chain.url })
      await untilReady(backend.url)
      const ready = performance.now() - start
      await starting
      const statuses: string[] = []
      for (const slug of slugs) statuses.push(await untilSettled(backend.url, slug))
      const complete = statuses.filter((status) => status === 'complete').length
      const seconds = (performance.now() - start) / 1000
      console.log(
        `${kind.padEnd(8)}  ready after ${(ready / 1000).toFixed(2)} s; ${complete} complete after ${seconds.toFixed(1)} s`,
      )
    } finally {
      await backend.stop()
      await chain.stop()
    }
  }
}

async function untilReady(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/health/ready`).catch(() => undefined)
    await response?.body?.cancel()
    if (response?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function untilSettled(url: string, slug: string): Promise<string> {
  for (;;) {
    const response = await fetch(`${url}/proof/${slug}`)
    const { status } = (await response.json()) as { status: string }
    if (!status.startsWith('pending')) return status
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
