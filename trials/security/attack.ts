import type { Choices } from './createChoices.ts'
import type { Target } from './startTarget.ts'

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
  /** Requests, connections or inputs, as the figures say. */
  tried: number
  figures: Record<string, string | number>
  /** What must not be: none is the only good answer. */
  faults: string[]
}

export type Attack = (context: AttackContext) => Promise<AttackResult>
