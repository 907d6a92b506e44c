import type { Scope } from '@countersign/testing/stack'
import type { Table } from './table.ts'

/** Everything that a trial starts belongs to the scope, which ends with the trial and on a signal. */
export type TrialDeps = { scope: Scope; say(line: string): void }

export type Outcome = {
  /** The trial passed if there are none. */
  faults: readonly string[]
  tables?: readonly Table[]
  /** Other measurements. */
  figures?: Readonly<Record<string, unknown>>
}

export type Option = { text: string; placeholder?: string } & (
  | { kind: 'flag' }
  | { kind: 'text'; default: string }
  | { kind: 'number'; default: number; least: number; most: number; isWhole: boolean }
  /** Given as a comma-separated list or several times. Default: all. */
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
  /** Names accepted as arguments without an option. Default: all. */
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

/** An error found only after the trial has loaded: an invalid argument or a missing program. */
export class WrongArgumentError extends Error {
  override name = 'WrongArgumentError'
}

/** The names that contain the text. */
export function selectNames<Name extends string>(names: readonly Name[], wanted: string): Name[] {
  const selected = names.filter((name) => name.includes(wanted))
  if (selected.length === 0)
    throw new WrongArgumentError(`no name contains ${wanted}: expected part of one of\n  ${names.join('\n  ')}`)
  return selected
}
