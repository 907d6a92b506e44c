import { setTimeout } from 'node:timers/promises'
import type { RunningWitness } from '@countersign/testing/launcher'
import { type BadWitness, contradicting, type Mood, moods } from './badWitness.ts'

/** How long a mood lasts. */
const SHORTEST_MS = 100
const LONGEST_MS = 2_000
const HONEST = 0.4
/** Now and then no witness is there for longer than anybody waits. */
const BLACKOUT_EVERY_MS = 40_000
const BLACKOUT_MS = 13_000
/** How often the process itself is killed, of all times that a witness is out of order. */
const KILLED = 0.1

export type MoodScript = {
  readonly changes: { moods: number; kills: number; blackouts: number }
  /** Resolves when all witnesses run, and are honest. */
  stop(): Promise<void>
}

/**
 * Changes what witnesses do, each for itself, at moments that the seed decides. One of them, and no other, contradicts the log now and
 * then: if two did, that would end its origin, which is another trial.
 */
export function startMoodScript(parameters: {
  witnesses: readonly { real: RunningWitness; bad: BadWitness }[]
  random: () => number
}): MoodScript {
  const { witnesses, random } = parameters
  const stopping = new AbortController()
  const changes = { moods: 0, kills: 0, blackouts: 0 }
  let isDark = false
  const sleep = (ms: number) => setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => undefined)
  const liar = witnesses[Math.floor(random() * witnesses.length)]

  function choose(witness: (typeof witnesses)[number]): Mood {
    if (isDark) return 'dead'
    if (random() < HONEST) return 'honest'
    const possible = moods.filter((mood) => witness === liar || !contradicting.includes(mood))
    return possible[Math.floor(random() * possible.length)] ?? 'honest'
  }

  async function live(witness: (typeof witnesses)[number]) {
    const { real, bad } = witness
    while (!stopping.signal.aborted) {
      const mood = choose(witness)
      changes.moods += 1
      bad.setMood(mood)
      const ms = SHORTEST_MS + random() * (LONGEST_MS - SHORTEST_MS)
      if (mood !== 'honest' && random() < KILLED) {
        changes.kills += 1
        await real.kill('SIGKILL')
        await sleep(ms)
        await real.start()
      } else await sleep(ms)
    }
    bad.setMood('honest')
  }

  async function darken() {
    while (!stopping.signal.aborted) {
      await sleep(BLACKOUT_EVERY_MS * (0.5 + random()))
      if (stopping.signal.aborted) return
      changes.blackouts += 1
      isDark = true
      for (const { bad } of witnesses) bad.setMood('dead')
      await sleep(BLACKOUT_MS)
      isDark = false
    }
  }

  const lives = [...witnesses.map(live), darken()]
  return {
    changes,
    async stop() {
      stopping.abort()
      await Promise.all(lives)
    },
  }
}
