import type { Table } from '../table.ts'
import type { Choices } from './createChoices.ts'
import type { Target } from './startTarget.ts'

/** `short` takes seconds and runs in the test suite; `full` produces the published figures. */
export type Size = 'short' | 'full'

export type AttackContext = {
  target: Target
  size: Size
  random: Choices
  say(line: string): void
}

export type AttackResult = {
  /** Number of requests, connections or inputs. */
  tried: number
  figures: Record<string, string | number>
  /** Must be empty. */
  faults: string[]
  table?: Table
}

export type Attack = (context: AttackContext) => Promise<AttackResult>
