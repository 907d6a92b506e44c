import type { Choices } from './createChoices.ts'
import type { Target } from './startTarget.ts'

/** Those that restart the coordinator come last. */
export const attackNames = [
  ...(['abuse-matrix', 'header-floods', 'open-redirect', 'log-injection', 'slug-timing'] as const),
  ...(['oversized-bodies', 'slow-connections', 'event-streams', 'cookie-tossing'] as const),
  ...(['vault-stolen-session', 'vault-own-coordinator', 'vault-second-enclave', 'vault-old-database'] as const),
  'rate-limits' as const,
]

/** `short` is for the test suite, a few seconds in all; `full` is what the figures are from. */
export type Size = 'short' | 'full'

export type AttackContext = {
  target: Target
  size: Size
  random: Choices
  /** Reports progress. */
  say(line: string): void
}

export type AttackResult = {
  name: string
  /** Requests, connections or inputs, as the figures say. */
  tried: number
  figures: Record<string, string | number>
  /** What must not be: none is the only good answer. */
  faults: string[]
}

export type Attack = (context: AttackContext) => Promise<AttackResult>
