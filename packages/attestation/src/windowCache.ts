import { isWithin, type ValidityWindow } from './x509/verifyChain.ts'

/**
 * Remembers verified facts by the content they were verified from. A fact is only handed out at a time inside its validity
 * window; outside, it is a miss, and verifying again gives the proper error. Least recently used facts leave first, and
 * the texts of all keys together never exceed `budget` characters.
 */
export type WindowCache<Fact> = {
  get(key: string, at: number): Fact | undefined
  set(key: string, fact: Fact): void
}

export function createWindowCache<Fact extends { window: ValidityWindow }>(budget: number): WindowCache<Fact> {
  const facts = new Map<string, Fact>()
  let used = 0

  function remove(key: string) {
    if (facts.delete(key)) used -= key.length
  }

  return {
    get(key, at) {
      const fact = facts.get(key)
      if (fact === undefined || !isWithin(fact.window, at)) return undefined
      facts.delete(key)
      facts.set(key, fact)
      return fact
    },
    set(key, fact) {
      remove(key)
      if (key.length > budget) return
      facts.set(key, fact)
      used += key.length
      for (const oldest of facts.keys()) {
        if (used <= budget) break
        remove(oldest)
      }
    },
  }
}
