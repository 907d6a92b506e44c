import { createPolicy } from '@countersign/policy'
import { startFakeKubo } from '@countersign/testing'
import { type Environment, mains, startService, toWorkerEnv } from '@countersign/testing/launcher'
import { createTx, createUser, readEvents } from '@countersign/testing/stack'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startContract } from '../../../contracts/startContract.ts'
import { startBackend } from '../test/backend.ts'

/** Jobs without a heartbeat for this long are given to others. */
const LEASE_MS = 11_000
const stops: (() => Promise<unknown>)[] = []
let backend: Awaited<ReturnType<typeof startBackend>>
let second: Awaited<ReturnType<typeof backend.startSecond>>
let contract: Awaited<ReturnType<typeof startContract>>
async function startWorkerProcess() {
  const { databaseUrl = '' } = backend
  const worker = spawnWorker(toWorkerEnv({ databaseUrl, publisher: contract.env, kuboUrl }))
  await worker.started
  return worker
}
const spawnWorker = (env: Environment) => startService({ name: 'worker', main: mains.worker, env })
let kuboUrl = ''

beforeAll(async () => {
  contract = await startContract()
  stops.push(() => contract.chain.stop())
  const kubo = await startFakeKubo()
  stops.push(() => kubo.stop())
  kuboUrl = kubo.url
  // These coordinators publish nothing: `WORKER=off`, although a chain is configured.
  backend = await startBackend({ env: { ...contract.env, WORKER: 'off' } })
  stops.push(() => backend.stop())
  second = await backend.startSecond()
  stops.push(() => second.stop())
}, 120_000)
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop()
})

test('two coordinators and two workers on one PostgreSQL publish nothing twice and share one nonce sequence when one is killed', async () => {
  const [one, other] = [createUser(backend), createUser(second)]
  await one.signIn('alice')
  await other.signIn('bob')
  const workers = await Promise.all([startWorkerProcess(), startWorkerProcess()])
  for (const worker of workers) stops.push(() => worker.kill('SIGKILL'))

  const slugs: string[] = []
  for (let round = 0; round < 4; round++) {
    const nonces = Array.from({ length: 8 }, (_, index) => 8 * round + index)
    const answers = await Promise.all(
      nonces.flatMap((nonce) => [one.sign(createTx(nonce)), other.sign(createTx(nonce))]),
    )
    for (const answer of answers) slugs.push(((await answer.json()) as { slug: string }).slug)
    if (round === 2) await workers[0].kill('SIGKILL')
  }
  await untilComplete(backend.url, slugs)
  await assertPublishedOnce()
  await workers[1].kill('SIGKILL')
}, 120_000)

test('a vault whose coordinator was killed and whose job was lost is available once a worker runs', async () => {
  const owner = createUser(backend)
  await owner.signIn('dave')
  const rule = {
    kind: 'transaction',
    chainIds: 'any',
    to: 'any',
    maxFeeWei: '42000',
    maxValueWei: '1',
    approvers: 'any',
  } as const
  const policy = createPolicy({ version: 1, log: null, approvers: [], rules: [{ ...rule, approvals: 0 }] })
  const asked = owner.post('/vaults', { policy }).catch(() => 'killed')
  const countUnpinned = () => backend.withDatabase((query) => query('select from policies where pinned_at is null'))
  while ((await countUnpinned()).length === 0) await wait()
  await backend.stopCoordinator('SIGKILL')
  expect(await asked).toBe('killed')
  await backend.withDatabase(async (query) => {
    await query(`delete from pgboss.job where name = 'policy'`)
    // Like one without a new request. Only the database's owner can change a policy.
    await query('set session_replication_role = replica')
    await query(`update policies set created_at = created_at - interval '1 minute'`)
  })
  await backend.startCoordinator()
  expect(await (await owner.get('/vaults')).json()).toEqual({ vaults: [] })
  const worker = await startWorkerProcess()
  stops.push(() => worker.kill('SIGKILL'))
  while ((await countUnpinned()).length > 0) await wait()
  expect(await (await owner.get('/vaults')).json()).toMatchObject({ vaults: [{ policy }] })
  await worker.kill('SIGKILL')
})

test('a publisher that is frozen beyond its lease and continues publishes nothing twice', async () => {
  await backend.stopCoordinator('SIGKILL')
  await backend.startCoordinator({
    WORKER: 'on',
    IPFS_PINNER: 'kubo',
    IPFS_API_URL: kuboUrl,
    FREEZE_AT: 'after the claim, before it is sent',
  })
  const user = createUser(backend)
  await user.signIn('carol')
  const sign = async (nonces: readonly number[]) => {
    const answers = await Promise.all(nonces.map((nonce) => user.sign(createTx(nonce))))
    return Promise.all(answers.map(async (answer) => ((await answer.json()) as { slug: string }).slug))
  }
  const slugs = await sign([0, 1, 2])
  while (!(await backend.isCoordinatorFrozen())) await wait()
  const frozenAt = Date.now()
  // Its claim and bytes are stored, and its job is taken, so another worker finds all of them.
  const worker = await startWorkerProcess()
  stops.push(() => worker.kill('SIGKILL'))
  await untilComplete(second.url, slugs)
  await worker.kill('SIGKILL')
  while (Date.now() - frozenAt < LEASE_MS) await wait()
  backend.wakeCoordinator()
  const later = await sign([3, 4])
  await untilComplete(backend.url, later)
  await assertPublishedOnce()
}, 120_000)

const wait = () => new Promise((resolve) => setTimeout(resolve, 200))
const published = new Set<string>()

async function untilComplete(url: string, slugs: readonly string[]) {
  for (const slug of slugs) {
    for (;;) {
      const proof = (await (await fetch(`${url}/proof/${slug}`)).json()) as { status: string; txHash: string }
      expect(proof.status).not.toMatch(/failed/)
      if (proof.status === 'complete') {
        published.add(proof.txHash)
        break
      }
      await wait()
    }
  }
}

/** One event for each complete proof, and nonces without a gap. */
async function assertPublishedOnce() {
  const events = await readEvents({ url: contract.chain.url, contract: contract.address })
  expect(events).toHaveLength(published.size)
  expect(new Set(events.map(({ txHash }) => txHash))).toEqual(published)
  const rows = await backend.withDatabase((query) => query('select nonce from publications order by nonce'))
  expect(rows.map(({ nonce }) => Number(nonce))).toEqual(rows.map((_, index) => index))
}

test('SIGTERM: the worker finishes its jobs and exits with 0', async () => {
  const worker = await startWorkerProcess()
  expect(await worker.kill('SIGTERM')).toBe(0)
})

test('without PostgreSQL and a chain the start fails and names both', async () => {
  const { started: refused } = spawnWorker({})
  await expect(refused).rejects.toThrow(/DATABASE_URL/)
  await expect(refused).rejects.toThrow(/RPC_URL/)
})
