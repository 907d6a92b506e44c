/** How the tries of an attack ended. A signature is the one fault that counts. */
export type Tally = {
  add(name: string, outcome: string): void
  tried(): number
  figures(): Record<string, string | number>
  faults(): string[]
}

/** What a signature is called. */
export const SIGNED = 'signed'

export function createTally(): Tally {
  const outcomes = new Map<string, number>()
  const signed: string[] = []
  let tried = 0
  return {
    add(name, outcome) {
      tried += 1
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      if (outcome === SIGNED) signed.push(name)
    },
    tried: () => tried,
    figures: () => ({
      signatures: signed.length,
      refusals: [...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', '),
    }),
    faults: () => [...new Set(signed)].map((name) => `signed: ${name}`),
  }
}
