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
import { attack, compareCauses, readCauses, readKeys } from './judge.ts'
import { startReceiver } from './receiver.ts'

const USERS = 8
const SIGNERS = 12
/** One sign-in takes as long as many signatures: of so many causes one is a sign-in. */
const SIGN_IN_SHARE = 10
const WORKERS = 2
const FAILING = 0.2
const KILL_EVERY_MS = 1_500
const KEYS_MS = 60_000
/** At least, and for each that is to be told. */
const SETTLE_MS = 240_000
const SETTLE_EACH_MS = 40
const AGAIN_MS = 120_000
const DEAD = 5

const options = {
  count: count(10_000, 'webhooks to be delivered'),
  seed: seed('of the random moments and failures'),
}
type Options = Values<typeof options>

export const webhooks: Trial = {
  summary: `Has the service report sign-ins and proofs to a receiver that fails one time in five, while coordinator and workers are killed at random
moments: each is delivered at least once, nothing is reported that did not happen, forged and replayed ones are refused, and nothing goes
where a redirect points.`,
  options,
  example: '--count 500',
  run: runWebhooks,
}

/**
 * Sign-ins and proofs, told to a receiver that fails one time in five, while the coordinator and the workers are killed at random moments.
 * Then some for a receiver that fails until they are given up, and that the operator sends again.
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
  const faults = await findStarted(workerEnv)
  const createWorkers = (changes: Environment) =>
    Array.from({ length: WORKERS }, (_, index) =>
      createMember({ name: `worker ${index + 1}`, kind: 'worker', env: { ...workerEnv, ...changes }, onLine() {} }),
    )
  let workers = createWorkers({})
  scope.add(undefined, () => Promise.all(workers.map((worker) => worker.kill('SIGKILL'))))
  // Before anybody signs in: what happened before there was a receiver is told to nobody.
  for (const worker of workers) await worker.start()
  // The coordinator reads them every few seconds.
  const isShown = async () => {
    keys = await readKeys(url)
    return keys.length > 0
  }
  await until(isShown, KEYS_MS)
  if (keys.length !== 1) faults.push(`health shows ${keys.length} keys`)
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
  const made = { proofs: 0, sessions: USERS }
  const isEnough = () => made.proofs + made.sessions >= count
  let nonce = 0
  async function sign(cookie: string) {
    const txMetadata = createTx(nonce++)
    const body = JSON.stringify({ digest: toDigest(txMetadata), txMetadata })
    const headers = { origin: APP_ORIGIN, 'content-type': 'application/json', cookie }
    const answer = await fetch(`${url}/sign/digest`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    if (answer.ok) made.proofs += 1
    else await pause(100)
  }
  async function repeat(run: (lane: number) => Promise<unknown>, lane: number) {
    // A coordinator that was just killed answers nobody.
    while (!isEnough()) await run(lane).catch(() => pause(100))
  }
  const signIn = async () => {
    if (made.sessions * SIGN_IN_SHARE > made.proofs + USERS * SIGN_IN_SHARE) return pause(20)
    await createUser({ url }).signIn(`user-${made.sessions % USERS}`)
    made.sessions += 1
  }
  const lanes = Array.from({ length: SIGNERS }, (_, lane) => repeat(() => sign(cookies[lane % USERS] ?? ''), lane))
  const sayProgress = () => say(`${made.proofs} signed, ${made.sessions} signed in, ${receiver.acted.size} told`)
  const saying = scope.add(setInterval(sayProgress, 10_000), async (timer) => clearInterval(timer))
  await Promise.all([...lanes, repeat(signIn, 0), repeat(signIn, 1)])
  sayProgress()

  // Killed until nearly all of it is told; then it must come to its end.
  const endsAt = performance.now() + SETTLE_MS + count * SETTLE_EACH_MS
  const leftMs = () => endsAt - performance.now()
  await until(() => receiver.acted.size >= 0.95 * (made.proofs + made.sessions), leftMs())
  await chaos.stop()
  const { kills } = chaos.counts
  const isSettled = async () => {
    const [row] = await query<{ isOver: boolean }>(
      `select not exists (select from proofs where status in ('pending_pin', 'pending_onchain'))
        and not exists (select from webhook_deliveries where status = 'pending') as "isOver"`,
    )
    return row?.isOver === true
  }
  await until(isSettled, leftMs(), 500)
  clearInterval(saying)
  const causes = await readCauses(query)
  faults.push(...compareCauses(causes, receiver.acted.values()))
  if (receiver.counts.refused > 0) faults.push(`${receiver.counts.refused} webhooks were refused by the helper`)
  const attacked = await attack(receiver.captured, keys)
  faults.push(...attacked.faults)
  say(`${receiver.acted.size} of ${causes.length} told, after ${kills} kills`)

  // A receiver that is down for longer than anybody waits.
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
  await until(() => broken.acted.size >= DEAD, AGAIN_MS)
  if (broken.acted.size !== DEAD) faults.push(`${broken.acted.size} of ${DEAD} arrived after they were sent again`)
  faults.push(...listDeaths(workers))
  for (const each of [receiver, broken]) {
    if (each.trapped() > 0) faults.push(`${each.trapped()} requests went where a redirect pointed`)
  }
  return {
    faults,
    figures: {
      causes: causes.length,
      delivered: receiver.acted.size,
      requests: receiver.counts,
      kills,
      forged: attacked.forged,
      replayed: attacked.replayed,
      dead,
    },
  }
}

/** Settings with which a worker must not start: receivers that are not on the internet, and shortcuts in production. */
async function findStarted(env: Environment): Promise<string[]> {
  const refused: Environment[] = [
    { ...env, WEBHOOK_URL: 'https://10.0.0.1/hook' },
    { ...env, WEBHOOK_URL: 'https://169.254.169.254/latest/meta-data' },
    { ...env, WEBHOOK_URL: 'http://receiver.example/hook' },
    { ...env, WEBHOOK_ALLOW_LOOPBACK: 'false' },
    { ...env, NODE_ENV: 'production' },
  ]
  const ends = await Promise.all(
    refused.map((each) => {
      const service = startService({ name: 'worker', main: mains.worker, env: each })
      return Promise.race([
        service.started.then(() => service.kill('SIGKILL')).then(() => 0),
        service.ended.then(({ code }) => code),
      ])
    }),
  )
  return ends.flatMap((code, index) =>
    code === 0 ? [`a worker started with settings ${index + 1} that it must refuse`] : [],
  )
}

/** As an operator runs it. */
async function runAdmin(databaseUrl: string, args: readonly string[]): Promise<string> {
  const { PATH = '' } = process.env
  const main = toPath('services/coordinator/src/admin.ts')
  const { stdout } = await promisify(execFile)(process.execPath, ['-C', 'source', main, ...args], {
    env: { PATH, DATABASE_URL: databaseUrl },
  })
  return stdout
}
