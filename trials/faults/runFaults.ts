import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type WalletInfo, withinTimeLimit } from '@countersign/protocol'
import { createRandom, readAnchors } from '@countersign/testing'
import { LOG_ORIGINS } from '@countersign/testing/launcher'
import { createUser } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { createDevManifest } from '../../dev/webConfig.ts'
import { type Backend, startBackend } from '../../services/coordinator/test/backend.ts'
import {
  type CrashPointName,
  checkpointCrashPoints,
  crashPoints,
  logCrashPoints,
} from '../../services/coordinator/test/crashPoints.ts'
import { createClient } from '../answers.ts'
import { audit, listFaults } from '../audit.ts'
import {
  count,
  flag,
  type Outcome,
  seed,
  type Trial,
  type TrialDeps,
  type Values,
  WrongArgumentError,
} from '../trial.ts'

const SIGNINGS = 3
/** A crash point not reached in this time is an error of the test. */
const REACH_MS = 60_000
/** With a log, a request left pending by a killed coordinator can be repeated after at most 90 seconds. */
const AGAIN_MS = 150_000
/** How often a witness is killed with the coordinator. */
const WITNESS_SHARE = 0.3

function listPoints({ rounds, witnesses, checkpoints }: Options): CrashPointName[] {
  const points = {
    ...crashPoints,
    ...(witnesses ? logCrashPoints : {}),
    ...(checkpoints ? checkpointCrashPoints : {}),
  }
  return Array.from({ length: rounds }, () => Object.keys(points) as CrashPointName[]).flat()
}

const options = {
  rounds: count(5, 'times that each named crash point is reached', { least: 0 }),
  kills: count(200, 'kills at random moments after that', { least: 0 }),
  witnesses: flag('with a log: includes its crash points and kills witnesses too'),
  checkpoints: flag('with --witnesses: publishes checkpoints of the log instead of events'),
  seed: seed('chooses the random moments'),
}
type Options = Values<typeof options>

export const faults: Trial = {
  summary:
    'Kills the coordinator and its worker while signatures arrive, and audits the signatures that clients received.',
  options,
  example: '--rounds 1 --kills 10',
  run: (deps, values: Options) => runFaults(deps, values),
}

/**
 * Kills the coordinator and its worker at the crash points `points`, then at random moments, while signatures are requested on a real
 * database, chain and IPFS node. Then restarts it and audits the received signatures as a third party.
 */
export async function runFaults(
  { scope, say }: TrialDeps,
  options: Options,
  points: readonly CrashPointName[] = listPoints(options),
): Promise<Outcome> {
  const { kills, witnesses: hasLog, checkpoints } = options
  if (checkpoints && !hasLog) throw new WrongArgumentError('--checkpoints requires --witnesses')
  const { chain, address: contract, ...deployed } = await startContract({ origins: LOG_ORIGINS })
  scope.add(chain, ({ stop }) => stop())
  const env = checkpoints ? deployed.checkpointsEnv : deployed.env
  const backend = await startBackend({ env, log: hasLog ? {} : undefined })
  scope.add(backend, ({ stop }) => stop())
  if (hasLog) await backend.untilReady()
  const random = createRandom(options.seed)
  const user = createUser(backend)
  await user.signIn('alice')
  const { address } = (await (await user.get('/wallet/me')).json()) as WalletInfo
  const client = createClient(user)

  await backend.stopCoordinator('SIGKILL')
  for (const point of points) {
    const nonces = client.next(SIGNINGS)
    const isUp = await start(backend, { CRASH_AT: point })
    const signing = isUp ? client.sign(nonces) : Promise.resolve()
    const { code, how } = await withinTimeLimit(REACH_MS, backend.coordinatorEnded, {
      createError: () => new Error(`coordinator did not reach crash point “${point}” in time`),
    })
    // A failed start also ends the process, but with an exit code.
    if (code !== null) throw new Error(`coordinator ${how} before it reached crash point “${point}”`)
    await signing
    say(`killed at “${point}” (${client.answers.size} answered)`)
  }
  for (let kill = 1; kill <= kills; kill++) {
    await start(backend, {})
    const signing = client.sign(client.next(SIGNINGS))
    const witness = random() < WITNESS_SHARE ? backend.witnesses[kill % backend.witnesses.length] : undefined
    await setTimeout(random() * 2_500)
    await Promise.all([backend.stopCoordinator('SIGKILL'), witness?.kill('SIGKILL')])
    await signing
    await witness?.start()
    if (kill % 10 === 0) say(`${kill} random kills (${client.answers.size} answered)`)
  }
  await start(backend, {})
  // Requests without an answer are repeated; the others must get the same answer again.
  const all = client.all()
  const until = performance.now() + (hasLog ? AGAIN_MS : 0)
  do {
    await client.sign(all)
  } while (client.missing(all).length > 0 && performance.now() < until)

  const { url, satellite } = backend
  const anchors = await readAnchors({ url, enclave: backend.enclaveFields(), satellite })
  // The coordinator serves as the IPFS gateway.
  const stack = { url, chainUrl: chain.url, contract, ipfsUrl: url, anchors }
  const writeManifest = async () => {
    const { logWitness: logContract, logs } = deployed
    const manifest = join(await scope.createFolder(), 'manifest.json')
    const listed = { ...chain, contract, logWitness: { address: logContract, fromBlock: 0, logs } }
    await writeFile(manifest, JSON.stringify(createDevManifest(listed, anchors, backend.witnesses)))
    return { address: logContract, ids: logs.map(({ id }) => id), manifest }
  }
  const logWitness = checkpoints ? await writeManifest() : undefined
  const audited = await audit({ ...stack, logWitness }, client.received(address), { say })
  return {
    faults: [
      ...listFaults(audited),
      ...client.conflicts,
      ...client.missing(all).map((each) => `nonce ${each} was never answered`),
    ],
    figures: { kills: points.length + kills, answered: client.answers.size, verified: audited.verified },
  }
}

async function start(backend: Backend, changes: Record<string, string>): Promise<boolean> {
  try {
    await backend.startCoordinator(changes)
    if (backend.witnesses.length > 0) await backend.untilReady()
    return true
  } catch (error) {
    // Leftover work can reach the crash point during the start.
    if (changes.CRASH_AT !== undefined) return false
    throw error
  }
}
