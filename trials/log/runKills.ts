import { setTimeout } from 'node:timers/promises'
import { parseVkey } from '@countersign/log'
import { enclavePaths, type Hex, toHex, withinTimeLimit } from '@countersign/protocol'
import { startBackend } from '@countersign/testing'
import { createTx, createUser, type TestUser, toDigest, withScope } from '@countersign/testing/stack'
import type { CrashPointName } from '../../services/coordinator/test/crashPoints.ts'
import { openQuery } from '../openQuery.ts'
import { type BadWitness, startBadWitness } from './badWitness.ts'
import { startInterceptor } from './interceptor.ts'
import { judgeLog, type LogVerdict } from './judgeLog.ts'
import { judgeReceipts } from './judgeReceipts.ts'
import { readLogs } from './readLogs.ts'
import { readNewest } from './readNewest.ts'

/** Who is killed, and when: coordinators by points in their own code, the others by what passes between them. */
export const killPoints = {
  'coordinator: after the enclave signed': { crashAt: 'after the enclave' },
  'coordinator: after the entries are written': { crashAt: 'after the entries are written' },
  'coordinator: after one witness answered': { coordinatorAt: 'witness' },
  'coordinator: after the witnesses': { crashAt: 'after the witnesses' },
  'coordinator: before the release': { crashAt: 'before the release' },
  'coordinator: after the release': { crashAt: 'after the release' },
  'coordinator: before the commit': { crashAt: 'before the commit' },
  'coordinator: after the commit': { crashAt: 'after the commit, before the answer' },
  'coordinator: after the acknowledgement': { crashAt: 'after the acknowledgement' },
  'enclave: signed, before its answer': { enclaveAt: { path: enclavePaths.sign, when: 'after' } },
  'enclave: before the release': { enclaveAt: { path: enclavePaths.release, when: 'before' } },
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

export type KillPointName = keyof typeof killPoints

export type KillsReport = {
  kills: number
  /** Signatures that callers received. */
  answered: number
  entries: LogVerdict['counts']
  /** Receipts that the verifier accepted. */
  receipts: number
  faults: string[]
}

type Answer = { signature: Hex; slug: string }

const SIGNINGS = 3
const QUORUM = 2
/** A point that is not reached in this time is a fault of the trial. */
const REACH_MS = 60_000
const SETTLE_MS = 180_000
/** A claim of somebody who died falls after 90 seconds at the latest. */
const AGAIN_MS = 150_000

/**
 * Kills coordinator, enclave and witnesses at each of these points while signatures are asked for, starts them again, and goes on. In the
 * end there is one history, every answer stands, and whoever asks again gets the same.
 */
export function runKills(parameters: {
  points: readonly KillPointName[]
  say(line: string): void
}): Promise<KillsReport> {
  const { points, say } = parameters
  return withScope(async (scope) => {
    const witnessed: BadWitness[] = []
    const backend = scope.add(
      await startBackend({
        env: { WORKER: 'off' },
        log: {
          async route(witness, { add }) {
            const bad = add(await startBadWitness({ witness, random: () => 0 }), ({ stop }) => stop())
            witnessed.push(bad)
            return bad.url
          },
        },
      }),
      ({ stop }) => stop(),
    )
    const { witnesses, databaseUrl = '' } = backend
    let moment: (EnclaveMoment & { act(): Promise<void> }) | undefined
    const wire = scope.add(
      await startInterceptor(backend.enclaveUrl, async ({ path, body }, forward) => {
        const taken = moment?.path === path && isOfStatements(path, body) ? moment : undefined
        if (taken === undefined) return forward()
        moment = undefined
        if (taken.when === 'before') await taken.act()
        await forward()
        await taken.act()
        return undefined
      }),
      ({ stop }) => stop(),
    )
    await backend.stopCoordinator('SIGKILL')
    const start = (changes: Record<string, string> = {}) =>
      backend.startCoordinator({ ENCLAVE_URL: wire.url, ...changes })
    await start()
    await backend.untilReady()
    const user = createUser(backend)
    await user.signIn('alice')

    const answers = new Map<number, Answer>()
    const faults: string[] = []
    let nonce = 0
    let kills = 0
    /** Asks for signatures; what is not answered with one is no answer. */
    const sign = (nonces: readonly number[]) =>
      Promise.all(
        nonces.map(async (each) => {
          const answer = await ask(user, each)
          const earlier = answers.get(each)
          if (answer === undefined) return
          if (earlier !== undefined && (earlier.slug !== answer.slug || earlier.signature !== answer.signature)) {
            faults.push(`nonce ${each} was answered with ${earlier.slug} and ${answer.slug}`)
          }
          answers.set(each, answer)
        }),
      )
    const next = () => Array.from({ length: SIGNINGS }, () => nonce++)

    for (const name of points) {
      await hit(name)
      kills += 1
      const nonces = next()
      await withinTimeLimit(REACH_MS, () => untilAnswered(sign, answers, nonces), {
        createError: () => new Error(`nothing was signed after “${name}”`),
      })
      say(`killed ${name} (${answers.size} answered)`)
    }

    /** Kills once, while signatures are asked for, and starts again what was killed. */
    async function hit(name: KillPointName) {
      const point: KillPoint = killPoints[name]
      const reach = <Result>(run: () => Promise<Result>) =>
        withinTimeLimit(REACH_MS, run, { createError: () => new Error(`“${name}” was not reached`) })
      if ('crashAt' in point) {
        await backend.stopCoordinator('SIGKILL')
        await start({ CRASH_AT: point.crashAt })
        await backend.untilReady()
        const signing = sign(next())
        await reach(backend.coordinatorEnded)
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
        const signing = sign(next())
        await reach(() => reached)
        await signing
        if ('coordinatorAt' in point) await start()
        else if ('enclaveAt' in point) await backend.startEnclave()
        else await witness?.start()
      }
      await backend.untilReady()
    }

    say('asking again for what was not answered')
    const all = Array.from({ length: nonce }, (_, each) => each)
    const until = performance.now() + AGAIN_MS
    while (all.some((each) => !answers.has(each)) && performance.now() < until) {
      await sign(all.filter((each) => !answers.has(each)))
      await setTimeout(1_000)
    }
    await sign(all)
    for (const each of all) if (!answers.has(each)) faults.push(`nonce ${each} was never answered`)

    say('waiting until each entry has come to its end')
    const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())
    const policy = { witnesses: witnesses.map(({ vkey }) => toHex(parseVkey(vkey).publicKey)), quorum: QUORUM }
    const settleBy = performance.now() + SETTLE_MS
    let verdict = await judge()
    while (verdict.open > 0 && performance.now() < settleBy) {
      await setTimeout(1_000)
      verdict = await judge()
    }
    async function judge(): Promise<LogVerdict> {
      const [rows, ...others] = await readLogs(query)
      if (rows === undefined) throw new Error('there is no log')
      const newest = await readNewest(witnesses, rows.origin)
      // Read after the rows: what they have was cosigned by then.
      const cosigned = witnessed.flatMap((each) => each.cosigned)
      const judged = judgeLog(rows, { policy, cosigned, newest })
      return { ...judged, faults: [...judged.faults, ...others.map(({ origin }) => `${origin} was begun`)] }
    }
    if (verdict.open > 0) faults.push(`${verdict.open} entries have no end`)
    const stored = (await query<{ slug: string }>('select slug from attestations')).map(({ slug }) => slug)
    const given = new Set([...answers.values()].map(({ slug }) => slug))
    for (const slug of stored) if (!given.has(slug)) faults.push(`${slug} is stored, and was given to nobody`)
    for (const slug of given) if (!stored.includes(slug)) faults.push(`${slug} was answered, and is not stored`)
    const refused = await judgeReceipts({ databaseUrl, slugs: stored, policy, entropyKey: backend.satellite.publicKey })
    return {
      kills,
      answered: answers.size,
      entries: verdict.counts,
      receipts: stored.length - refused.length,
      faults: [...faults, ...verdict.faults, ...refused],
    }
  })
}

/** Calls that open a log, or only acknowledge, are not what is waited for. */
function isOfStatements(path: string, body: Buffer): boolean {
  if (path !== enclavePaths.release) return true
  const { leaves = [] } = JSON.parse(body.toString('utf8')) as { leaves?: readonly string[] }
  return leaves.length > 0
}

async function untilAnswered(
  sign: (nonces: readonly number[]) => Promise<unknown>,
  answers: ReadonlyMap<number, Answer>,
  nonces: readonly number[],
) {
  for (;;) {
    await sign(nonces.filter((each) => !answers.has(each)))
    if (nonces.every((each) => answers.has(each))) return
    await setTimeout(200)
  }
}

async function ask(user: TestUser, nonce: number): Promise<Answer | undefined> {
  const txMetadata = createTx(nonce)
  try {
    const response = await user.post('/sign/digest', { digest: toDigest(txMetadata), txMetadata })
    return response.status === 200 ? ((await response.json()) as Answer) : undefined
  } catch {
    return undefined
  }
}
