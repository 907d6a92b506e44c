import { setTimeout } from 'node:timers/promises'
import type { startDatabase } from '../cluster/startCluster.ts'
import type { Member } from '../member.ts'

type ChaosCounts = { kills: number; freezes: number; cuts: number; databaseKills: number }

export type Chaos = {
  readonly counts: ChaosCounts
  /** Resolves when all processes serve again. They are only restarted, as a supervisor would do. */
  stop(): Promise<void>
}

/** A process that can be killed, and optionally frozen. */
type Victim = Pick<Member, 'name' | 'pid'> & {
  start(): Promise<unknown>
  kill(signal: 'SIGKILL'): Promise<unknown>
} & Partial<Pick<Member, 'freeze' | 'wake'>>

/** Longest time until a killed process is restarted. */
const RESTART_MS = 1_000
/** Most freezes are short; some outlast the lease of a job. */
const FREEZE_MS = { usual: 2_500, long: 14_000 }
const LONG_FREEZE = 0.1
const CUT_MS = 2_500
/** Share of database outages in which PostgreSQL is killed instead of cut off. */
const DATABASE_KILL = 0.25

/**
 * Kills a process about every `killEveryMs`. With `disturb`, it also freezes processes and cuts off the database. The seed decides which and
 * when, but the reaction of the processes varies.
 */
export function startChaos(parameters: {
  members: readonly Victim[]
  random: () => number
  killEveryMs: number
  /** Waits until the last killed process serves again before it kills the next one. */
  isPatient?: boolean
  disturb?: Pick<Awaited<ReturnType<typeof startDatabase>>, 'postgres' | 'wire'> & { everyMs: number }
  say(line: string): void
}): Chaos {
  const { members, random, isPatient = false, disturb, say } = parameters
  const counts: ChaosCounts = { kills: 0, freezes: 0, cuts: 0, databaseKills: 0 }
  const restarting = new Map<Victim, Promise<unknown>>()
  const frozen = new Set<Victim>()
  const stopping = new AbortController()

  const sleep = (ms: number) => setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => undefined)
  /** Between half and one and a half times `ms`. */
  const vary = (ms: number) => ms * (0.5 + random())
  const choose = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]

  /** Retries until it serves: it may be killed while it starts. */
  async function restart(member: Victim) {
    await sleep(random() * RESTART_MS)
    for (;;) {
      try {
        return await member.start()
      } catch {
        if (stopping.signal.aborted) await setTimeout(200)
        else await sleep(random() * RESTART_MS)
      }
    }
  }

  async function kill() {
    if (isPatient && restarting.size > 0) return
    const member = choose(members.filter((each) => each.pid() !== undefined))
    if (member === undefined) return
    counts.kills += 1
    say(`killed ${member.name}${restarting.has(member) ? ' while it started' : ''}`)
    frozen.delete(member)
    await member.kill('SIGKILL')
    if (restarting.has(member)) return
    const back = restart(member).finally(() => restarting.delete(member))
    restarting.set(member, back)
  }

  async function freeze() {
    const member = choose(members.filter((each) => each.pid() !== undefined && !frozen.has(each)))
    if (member === undefined) return
    const ms = random() < LONG_FREEZE ? FREEZE_MS.long : vary(FREEZE_MS.usual)
    counts.freezes += 1
    say(`froze ${member.name} for ${Math.round(ms)} ms`)
    frozen.add(member)
    member.freeze?.()
    await sleep(ms)
    frozen.delete(member)
    member.wake?.()
  }

  async function cut({ postgres, wire }: NonNullable<typeof disturb>) {
    if (random() < DATABASE_KILL) {
      counts.databaseKills += 1
      say('killed PostgreSQL')
      await postgres.kill()
      await sleep(vary(RESTART_MS))
      await postgres.restart()
      return
    }
    counts.cuts += 1
    const ms = vary(CUT_MS)
    say(`cut PostgreSQL off for ${Math.round(ms)} ms`)
    wire.cut()
    await sleep(ms)
    wire.restore()
  }

  async function repeat(everyMs: number, act: () => Promise<void>) {
    for (;;) {
      await sleep(vary(everyMs))
      if (stopping.signal.aborted) return
      await act()
    }
  }

  const loops = [repeat(parameters.killEveryMs, kill)]
  if (disturb)
    loops.push(
      repeat(disturb.everyMs, freeze),
      repeat(2 * disturb.everyMs, () => cut(disturb)),
    )
  return {
    counts,
    async stop() {
      stopping.abort()
      await Promise.all(loops)
      for (const member of members) member.wake?.()
      await Promise.all(restarting.values())
    },
  }
}
