import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createRandom, startBackend, startFakeKubo } from '@countersign/testing'
import { APP_ORIGIN, type Environment, mains, startService, toPath, toWorkerEnv } from '@countersign/testing/launcher'
import { createAccounts, createTx, createUser, toDigest } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { signInAll } from '../bench/load.ts'
import { createMember, listDeaths } from '../member.ts'
import { openQuery } from '../openQuery.ts'
import { startChaos } from '../soak/chaos.ts'
import { count, type Outcome, seed, type Trial, type TrialDeps, type Values } from '../trial.ts'
import { until } from '../until.ts'
import { attack, compareCauses, readCauses, readKeys } from './checkWebhooks.ts'
import { startReceiver } from './receiver.ts'

const USERS = 8
const SIGNERS = 12
/** One in this many causes is a sign-in, because a sign-in takes as long as many signatures. */
const SIGN_IN_SHARE = 10
const WORKERS = 2
const FAILING = 0.2
const KILL_EVERY_MS = 1_500
const KEYS_MS = 60_000
/** Time limit for delivery, plus time for each webhook. */
const DELIVERY_MS = 240_000
const DELIVERY_EACH_MS = 40
const AGAIN_MS = 120_000
const DEAD = 5

const options = {
  count: count(10_000, 'webhooks to deliver'),
  seed: seed('chooses the random times and failures'),
}
type Options = Values<typeof options>

export const webhooks: Trial = {
  summary: `Sends webhooks about sign-ins and proofs to a receiver that fails one time in five, while coordinator and workers are killed at random.
Checks that each webhook is delivered at least once, that no webhook is made up, that the SDK rejects forged and replayed ones, and that
redirects are not followed.`,
  options,
  example: '--count 500',
  run: runWebhooks,
}

/**
 * Sends webhooks about sign-ins and proofs to a receiver that fails one time in five, while the coordinator and the workers are killed at
 * random. Then sends some to a receiver that fails until the service stops retrying, and resends them as the operator.
 */
export async function runWebhooks({ scope, say }: TrialDeps, { count, seed }: Options): Promise<Outcome> {
  const random = (stream: number) => createRandom(seed * 16 + stream)
  const folder = await scope.createFolder()
  const stopEach = (part: { stop(): Promise<unknown> }) => part.stop()
  const backend = scope.add(
    await startBackend({
      accounts: createAccounts(USERS),
      env: { WORKER: 'off', PIPELINE_DELAY_MS: '0' },
    }),
    stopEach,
  )
  const { url, databaseUrl } = backend
  const contract = await startContract()
  scope.add(contract.chain, stopEach)
  const ipfs = scope.add(await startFakeKubo(), stopEach)
  let keys: readonly string[] = []
  const shared = { keys: () => keys, random: random(1) }
  const receiver = scope.add(await startReceiver({ ...shared, rate: FAILING }), stopEach)
  const broken = scope.add(await startReceiver({ ...shared, rate: 1 }), stopEach)
  const workerEnv: Environment = {
    ...toWorkerEnv({ databaseUrl, publisher: contract.env, kuboUrl: ipfs.url }),
    DATA_DIR: join(folder, 'worker'),
    WEBHOOK_URL: receiver.url,
    WEBHOOK_PRIVATE_KEY: randomBytes(32).toString('hex'),
    WEBHOOK_TIMEOUT_MS: '3000',
    WEBHOOK_ALLOW_LOOPBACK: 'true',
  }
  const faults = await checkRejectedSettings(workerEnv)
  const createWorkers = (changes: Environment) =>
    Array.from({ length: WORKERS }, (_, index) =>
      createMember({ name: `worker ${index + 1}`, kind: 'worker', env: { ...workerEnv, ...changes }, onLine() {} }),
    )
  let workers = createWorkers({})
  scope.add(undefined, () => Promise.all(workers.map((worker) => worker.kill('SIGKILL'))))
  // Started before the first sign-in: events from before a receiver is configured are not sent.
  for (const worker of workers) await worker.start()
  // The coordinator reads the keys every few seconds.
  const isShown = async () => {
    keys = await readKeys(url)
    return keys.length > 0
  }
  await until(isShown, KEYS_MS)
  if (keys.length !== 1) faults.push(`expected 1 webhook key in health, got ${keys.length}`)
  const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())
  say('started the service, two workers and the receivers')

  const cookies = await signInAll(backend, USERS)
  const coordinator = {
    name: 'coordinator',
    pid: () => backend.pids().coordinator,
    start: () => backend.startCoordinator(),
    kill: backend.stopCoordinator,
  }
  const chaos = startChaos({
    members: [coordinator, ...workers],
    random: random(2),
    killEveryMs: KILL_EVERY_MS,
    isPatient: true,
    say() {},
  })
  const done = { proofs: 0, sessions: USERS }
  const isEnough = () => done.proofs + done.sessions >= count
  let nonce = 0
  async function sign(cookie: string) {
    const txMetadata = createTx(nonce++)
    const body = JSON.stringify({ digest: toDigest(txMetadata), txMetadata })
    const headers = { origin: APP_ORIGIN, 'content-type': 'application/json', cookie }
    const answer = await fetch(`${url}/sign/digest`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    if (answer.ok) done.proofs += 1
    else await pause(100)
  }
  async function repeat(run: (lane: number) => Promise<unknown>, lane: number) {
    // A coordinator that was just killed doesn't answer.
    while (!isEnough()) await run(lane).catch(() => pause(100))
  }
  const signIn = async () => {
    if (done.sessions * SIGN_IN_SHARE > done.proofs + USERS * SIGN_IN_SHARE) return pause(20)
    await createUser({ url }).signIn(`user-${done.sessions % USERS}`)
    done.sessions += 1
  }
  const lanes = Array.from({ length: SIGNERS }, (_, lane) => repeat(() => sign(cookies[lane % USERS] ?? ''), lane))
  const sayProgress = () =>
    say(`${done.proofs} signed, ${done.sessions} signed in, ${receiver.processed.size} webhooks delivered`)
  const saying = scope.add(setInterval(sayProgress, 10_000), async (timer) => clearInterval(timer))
  await Promise.all([...lanes, repeat(signIn, 0), repeat(signIn, 1)])
  sayProgress()

  // Kills continue until most webhooks are delivered. Then the rest must be delivered too.
  const endsAt = performance.now() + DELIVERY_MS + count * DELIVERY_EACH_MS
  const leftMs = () => endsAt - performance.now()
  await until(() => receiver.processed.size >= 0.95 * (done.proofs + done.sessions), leftMs())
  await chaos.stop()
  const { kills } = chaos.counts
  const isOver = async () => {
    const [row] = await query<{ isOver: boolean }>(
      `select not exists (select from proofs where status in ('pending_pin', 'pending_onchain'))
        and not exists (select from webhook_deliveries where status = 'pending') as "isOver"`,
    )
    return row?.isOver === true
  }
  await until(isOver, leftMs(), 500)
  clearInterval(saying)
  const causes = await readCauses(query)
  faults.push(...compareCauses(causes, receiver.processed.values()))
  if (receiver.counts.rejected > 0) faults.push(`the SDK rejected ${receiver.counts.rejected} webhooks`)
  const attacked = await attack(receiver.captured, keys)
  faults.push(...attacked.faults)
  say(`${receiver.processed.size} of ${causes.length} webhooks delivered after ${kills} kills`)

  // Tests a receiver that is down until the deadline for retries.
  for (const worker of workers) await worker.kill('SIGTERM')
  faults.push(...listDeaths(workers))
  workers = createWorkers({ WEBHOOK_URL: broken.url, WEBHOOK_DEADLINE_S: '2', WEBHOOK_TIMEOUT_MS: '10000' })
  for (const worker of workers) await worker.start()
  for (let index = 0; index < DEAD; index++) await createUser({ url }).signIn(`user-${index}`)
  let dead = 0
  const areDead = async () => {
    dead = (JSON.parse(await runAdmin(databaseUrl, ['webhooks', '--status', 'dead', '--json'])) as unknown[]).length
    return dead >= DEAD
  }
  await until(areDead, AGAIN_MS)
  broken.recover()
  await runAdmin(databaseUrl, ['webhooks', '--retry', 'all'])
  await until(() => broken.processed.size >= DEAD, AGAIN_MS)
  if (broken.processed.size !== DEAD)
    faults.push(`${broken.processed.size} of ${DEAD} webhooks delivered after the resend`)
  faults.push(...listDeaths(workers))
  for (const each of [receiver, broken]) {
    if (each.trapped() > 0) faults.push(`${each.trapped()} requests followed a redirect`)
  }
  return {
    faults,
    figures: {
      causes: causes.length,
      delivered: receiver.processed.size,
      requests: receiver.counts,
      kills,
      forged: attacked.forged,
      replayed: attacked.replayed,
      dead,
    },
  }
}

/** Settings that a worker must reject: receivers outside the public internet, and development shortcuts in production. */
async function checkRejectedSettings(env: Environment): Promise<string[]> {
  const rejected: Environment[] = [
    { ...env, WEBHOOK_URL: 'https://10.0.0.1/hook' },
    { ...env, WEBHOOK_URL: 'https://169.254.169.254/latest/meta-data' },
    { ...env, WEBHOOK_URL: 'http://receiver.example/hook' },
    { ...env, WEBHOOK_ALLOW_LOOPBACK: 'false' },
    { ...env, NODE_ENV: 'production' },
  ]
  const ends = await Promise.all(
    rejected.map((each) => {
      const service = startService({ name: 'worker', main: mains.worker, env: each })
      return Promise.race([
        service.started.then(() => service.kill('SIGKILL')).then(() => 0),
        service.ended.then(({ code }) => code),
      ])
    }),
  )
  return ends.flatMap((code, index) => (code === 0 ? [`a worker started with invalid settings ${index + 1}`] : []))
}

/** Runs the admin command as an operator would. */
async function runAdmin(databaseUrl: string, args: readonly string[]): Promise<string> {
  const { PATH = '' } = process.env
  const main = toPath('services/coordinator/src/admin.ts')
  const { stdout } = await promisify(execFile)(process.execPath, ['-C', 'source', main, ...args], {
    env: { PATH, DATABASE_URL: databaseUrl },
  })
  return stdout
}
