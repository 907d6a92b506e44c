/** A figure against its reference, both measured in the same run. */
type Ratio = { value: number; to: string }

export type Row = {
  name: string
  /** Under what load, or of what size. */
  at?: { value: number; of: string }
  value: number
  unit: string
  ratios?: readonly Ratio[]
}

/** What a suite has found out. */
export type Report = {
  suite: string
  title: string
  /** What was measured on what, in a sentence or two. */
  setting: string
  rows: readonly Row[]
  notes?: readonly string[]
  /** For plots: too long for a table. */
  series?: readonly Series[]
  /** For plots: what a figure cannot pass, or comes from. */
  limits?: readonly Limit[]
  /** For plots: of sums and what they are made of. */
  stacks?: readonly Stack[]
  /** For finding causes: in the JSON only. */
  details?: unknown
}

export type Series = { name: string; points: readonly (readonly [x: number, y: number])[] }

export type Limit = { name: string; value: number; unit: string }

export type Stack = { name: string; parts: readonly { name: string; value: number }[] }

/** How a suite is run. */
export type Run = {
  /** Repeats in which all candidates take turns. */
  rounds: number
  /** Small sizes, to try a suite out: the figures mean little. */
  isQuick: boolean
  /** Evidence to measure on. */
  fixtures: string
  /** Another checkout, to measure beside this one. */
  against?: string | undefined
  /** Of signing, only where processor time goes. */
  isBudget?: boolean
  /** Reports progress. */
  say(text: string): void
}

export type Suite = (run: Run) => Promise<Report | readonly Report[]>
