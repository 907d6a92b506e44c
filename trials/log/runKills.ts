import { setTimeout } from 'node:timers/promises'
import { enclavePaths, withinTimeLimit } from '@countersign/protocol'
import { createUser } from '@countersign/testing/stack'
import type { CrashPointName } from '../../services/coordinator/test/crashPoints.ts'
import { createClient } from '../answers.ts'
import { startInterceptor } from '../interceptor.ts'
import { count, type Outcome, selectNames, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { auditLog, startWitnessed } from './auditLog.ts'

/** Which process is killed, and when: coordinators at crash points in their code, the others by intercepted requests. */
const killPoints = {
  'coordinator: after the enclave signed, before its quote': { crashAt: 'after the enclave' },
  'coordinator: after the entries are written, before the quote': { crashAt: 'after the entries are written' },
  'coordinator: after one witness answered': { coordinatorAt: 'witness' },
  'coordinator: after the witnesses': { crashAt: 'after the witnesses' },
  'coordinator: before the release': { crashAt: 'before the release' },
  'coordinator: after the release': { crashAt: 'after the release' },
  'coordinator: before the commit': { crashAt: 'before the commit' },
  'coordinator: after the commit': { crashAt: 'after the commit, before the answer' },
  'coordinator: after the acknowledgement': { crashAt: 'after the acknowledgement' },
  'enclave: appended, before its answer and its quote': { enclaveAt: { path: enclavePaths.sign, when: 'after' } },
  'enclave: before the release and the quote': { enclaveAt: { path: enclavePaths.release, when: 'before' } },
  'enclave: released, before its answer': { enclaveAt: { path: enclavePaths.release, when: 'after' } },
  'witness: before it records': { witnessAt: 'before' },
  'witness: recorded, before its answer': { witnessAt: 'after' },
} as const satisfies Record<string, KillPoint>

type KillPoint =
  | { crashAt: CrashPointName }
  | { coordinatorAt: 'witness' }
  | { enclaveAt: EnclaveMoment }
  | { witnessAt: 'before' | 'after' }
type EnclaveMoment = { path: string; when: 'before' | 'after' }

type KillPointName = keyof typeof killPoints

const SIGNINGS = 3
/** Long enough that entries are written and cosigned before the quote is ready. */
const QUOTE_MS = 200
/** A step not reached in this time is an error of the trial. */
const REACH_MS = 60_000
/** A claim of a killed process expires after at most 90 seconds. */
const AGAIN_MS = 150_000

const options = {
  rounds: count(5, 'times that each step is reached'),
  only: word('WORD', 'run only the steps with this text in their names'),
}
type Options = Values<typeof options>

export const logKills: Trial = {
  summary: `Kills enclave, coordinator and witnesses at each named step of a logged signature, restarts them and continues signing. Checks that the
log has one history and that no answer is lost or changed.`,
  options,
  example: '--rounds 1 --only witness',
  run: runKills,
}

/**
 * Kills coordinator, enclave and witnesses at each step while signatures are requested, restarts them and continues. At the end there must be
 * one history, all answers must stand, and repeated requests must get the same answers.
 */
export async function runKills({ scope, say }: TrialDeps, { rounds, only }: Options): Promise<Outcome> {
  const names = selectNames(Object.keys(killPoints) as KillPointName[], only)
  const { backend, witnessed } = await startWitnessed(scope, () => ({ random: () => 0 }), { quoteLatencyMs: QUOTE_MS })
  const { witnesses } = backend
  let moment: (EnclaveMoment & { act(): Promise<void> }) | undefined
  const wire = await startInterceptor(backend.enclaveUrl, async ({ path, body }, forward) => {
    const taken = moment?.path === path && isOfStatements(path, body) ? moment : undefined
    if (taken === undefined) return forward()
    moment = undefined
    if (taken.when === 'before') await taken.act()
    await forward()
    await taken.act()
    return undefined
  })
  scope.add(wire, ({ stop }) => stop())
  await backend.stopCoordinator('SIGKILL')
  const start = (changes: Record<string, string> = {}) =>
    backend.startCoordinator({ ENCLAVE_URL: wire.url, ...changes })
  await start()
  await backend.untilReady()
  const user = createUser(backend)
  await user.signIn('alice')
  const client = createClient(user)
  let kills = 0

  async function untilAnswered(nonces: readonly number[]) {
    for (;;) {
      await client.sign(client.missing(nonces))
      if (client.missing(nonces).length === 0) return
      await setTimeout(200)
    }
  }

  /** Kills a process once while signatures are requested, and restarts it. */
  async function hit(name: KillPointName) {
    const point: KillPoint = killPoints[name]
    const reach = <Result>(run: () => Promise<Result>) =>
      withinTimeLimit(REACH_MS, run, { createError: () => new Error(`“${name}” was not reached in time`) })
    if ('crashAt' in point) {
      await backend.stopCoordinator('SIGKILL')
      await start({ CRASH_AT: point.crashAt })
      await backend.untilReady()
      const signing = client.sign(client.next(SIGNINGS))
      const { code, how } = await reach(backend.coordinatorEnded)
      if (code !== null) throw new Error(`coordinator ${how} before it reached “${name}”`)
      await signing
      await start()
    } else {
      const { promise: reached, resolve } = Promise.withResolvers<void>()
      const witness = witnesses[kills % witnesses.length]
      if ('coordinatorAt' in point) {
        witnessed[0]?.intercept('after', async () => {
          await backend.stopCoordinator('SIGKILL')
          resolve()
        })
      } else if ('enclaveAt' in point) {
        const act = async () => {
          await backend.stopEnclave('SIGKILL')
          resolve()
        }
        moment = { ...point.enclaveAt, act }
      } else {
        witnessed[kills % witnesses.length]?.intercept(point.witnessAt, async () => {
          await witness?.kill('SIGKILL')
          resolve()
        })
      }
      const signing = client.sign(client.next(SIGNINGS))
      await reach(() => reached)
      await signing
      if ('coordinatorAt' in point) await start()
      else if ('enclaveAt' in point) await backend.startEnclave()
      else await witness?.start()
    }
    await backend.untilReady()
  }

  for (const name of Array.from({ length: rounds }, () => names).flat()) {
    await hit(name)
    kills += 1
    const nonces = client.next(SIGNINGS)
    await withinTimeLimit(REACH_MS, () => untilAnswered(nonces), {
      createError: () => new Error(`signing did not resume after “${name}”`),
    })
    say(`killed at “${name}” (${client.answers.size} answered)`)
  }

  say('repeating unanswered requests')
  const all = client.all()
  const until = performance.now() + AGAIN_MS
  while (client.missing(all).length > 0 && performance.now() < until) {
    await client.sign(client.missing(all))
    await setTimeout(1_000)
  }
  await client.sign(all)
  const answered = new Set([...client.answers.values()].map(({ slug }) => slug))
  const audited = await auditLog(scope, { backend, witnessed }, { answered, receipts: answered.size, say })
  const { entries, receipts } = audited
  return {
    faults: [
      ...client.conflicts,
      ...client.missing(all).map((each) => `nonce ${each} was never answered`),
      ...audited.faults,
    ],
    figures: { kills, answered: answered.size, receipts, entries },
  }
}

/** Skips releases that open a log or only acknowledge. */
function isOfStatements(path: string, body: Buffer): boolean {
  if (path !== enclavePaths.release) return true
  const { leaves = [] } = JSON.parse(body.toString('utf8')) as { leaves?: readonly string[] }
  return leaves.length > 0
}
