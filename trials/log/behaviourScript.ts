import { setTimeout } from 'node:timers/promises'
import type { RunningWitness } from '@countersign/testing/launcher'
import { type BadWitness, type Behaviour, behaviours, contradicting } from './badWitness.ts'

/** How long a witness keeps a behaviour. */
const SHORTEST_MS = 100
const LONGEST_MS = 2_000
const HONEST = 0.4
/** Sometimes all witnesses are down for longer than callers wait. */
const BLACKOUT_EVERY_MS = 40_000
const BLACKOUT_MS = 13_000
/** Share of faults in which the process is killed. */
const KILLED = 0.1

export type BehaviourScript = {
  readonly changes: { behaviours: number; kills: number; blackouts: number }
  /** Resolves when all witnesses run and are honest. */
  stop(): Promise<void>
}

/**
 * Changes the behaviour of each witness at times that the seed decides. Only one of them ever contradicts the log: two would end its origin,
 * which another trial covers.
 */
export function startBehaviourScript(parameters: {
  witnesses: readonly { real: RunningWitness; bad: BadWitness }[]
  random: () => number
}): BehaviourScript {
  const { witnesses, random } = parameters
  const stopping = new AbortController()
  const changes = { behaviours: 0, kills: 0, blackouts: 0 }
  let isDark = false
  const sleep = (ms: number) => setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => undefined)
  const liar = witnesses[Math.floor(random() * witnesses.length)]

  function choose(witness: (typeof witnesses)[number]): Behaviour {
    if (isDark) return 'dead'
    if (random() < HONEST) return 'honest'
    const possible = behaviours.filter((behaviour) => witness === liar || !contradicting.includes(behaviour))
    return possible[Math.floor(random() * possible.length)] ?? 'honest'
  }

  async function behave(witness: (typeof witnesses)[number]) {
    const { real, bad } = witness
    while (!stopping.signal.aborted) {
      const behaviour = choose(witness)
      changes.behaviours += 1
      bad.setBehaviour(behaviour)
      const ms = SHORTEST_MS + random() * (LONGEST_MS - SHORTEST_MS)
      if (behaviour !== 'honest' && random() < KILLED) {
        changes.kills += 1
        await real.kill('SIGKILL')
        await sleep(ms)
        await real.start()
      } else await sleep(ms)
    }
    bad.setBehaviour('honest')
  }

  async function darken() {
    while (!stopping.signal.aborted) {
      await sleep(BLACKOUT_EVERY_MS * (0.5 + random()))
      if (stopping.signal.aborted) return
      changes.blackouts += 1
      isDark = true
      for (const { bad } of witnesses) bad.setBehaviour('dead')
      await sleep(BLACKOUT_MS)
      isDark = false
    }
  }

  const loops = [...witnesses.map(behave), darken()]
  return {
    changes,
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}
