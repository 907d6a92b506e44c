import type { Scope } from '@countersign/testing/stack'
import type { Table } from './table.ts'

/** What a trial runs with. Everything that it starts belongs to the scope, which ends with the trial and on a signal. */
export type TrialDeps = { scope: Scope; say(line: string): void }

export type Outcome = {
  /** A trial without faults has passed. */
  faults: readonly string[]
  tables?: readonly Table[]
  /** Everything else that was measured. */
  figures?: Readonly<Record<string, unknown>>
}

export type Option = { text: string; placeholder?: string } & (
  | { kind: 'flag' }
  | { kind: 'text'; default: string }
  | { kind: 'number'; default: number; least: number; most: number; isWhole: boolean }
  /** Given as a comma-separated list, or several times. Without it, all. */
  | { kind: 'choices'; among: readonly string[] }
)

type Value<Each extends Option> = Each extends { kind: 'flag' }
  ? boolean
  : Each extends { kind: 'number' }
    ? number
    : Each extends { among: readonly (infer Name)[] }
      ? readonly Name[]
      : string

export type Values<Options> = { [Name in keyof Options]: Options[Name] extends Option ? Value<Options[Name]> : never }

export type Trial = {
  summary: string
  options: Readonly<Record<string, Option>>
  /** Names that may be given without an option; all if none is given. */
  names?: readonly string[]
  example: string
  run(deps: TrialDeps, options: never, names: readonly string[]): Promise<Outcome>
}

export const flag = (text: string) => ({ kind: 'flag', text }) as const

export const word = (placeholder: string, text: string) => ({ kind: 'text', placeholder, text, default: '' }) as const

export const choices = <const Names extends readonly string[]>(placeholder: string, among: Names, text: string) =>
  ({ kind: 'choices', placeholder, among, text }) as const

/** A whole number from 1, unless limits are given. */
export const count = (
  given: number,
  text: string,
  { least = 1, most = Number.MAX_SAFE_INTEGER, isWhole = true } = {},
) => ({ kind: 'number', default: given, text, least, most, isWhole }) as const

export const seed = (text: string) => count(1, text, { least: 0 })

/** Only known when the trial has loaded: an argument that cannot be meant, or a program that is not installed. */
export class WrongArgumentError extends Error {
  override name = 'WrongArgumentError'
}

/** The names that have the word in them. */
export function selectNames<Name extends string>(names: readonly Name[], wanted: string): Name[] {
  const selected = names.filter((name) => name.includes(wanted))
  if (selected.length === 0) throw new WrongArgumentError(`no name has ${wanted} in it: ${names.join(', ')}`)
  return selected
}
