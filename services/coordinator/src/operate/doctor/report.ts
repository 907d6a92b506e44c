import type { NamedFinding, State } from './check.ts'
import { checkNames } from './names.ts'

const WORDS: Record<State, string> = { ok: 'ok', warning: 'warning', fault: 'FAULT', skipped: '' }
const STATE_WIDTH = 9
const NAME_WIDTH = Math.max(...checkNames.map((name) => name.length)) + 2

export type Summary = { state: 'ok' | 'warning' | 'fault'; counts: Readonly<Record<State, number>> }

export function summarize(found: readonly NamedFinding[]): Summary {
  const count = (state: State) => found.filter((each) => each.state === state).length
  const counts = { ok: count('ok'), warning: count('warning'), fault: count('fault'), skipped: count('skipped') }
  return { state: counts.fault > 0 ? 'fault' : counts.warning > 0 ? 'warning' : 'ok', counts }
}

/** For people: what was looked at, one line each, with the way to mend it below; then what was not, by reason. */
export function toText(found: readonly NamedFinding[]): string {
  const looked = found.filter(({ state }) => state !== 'skipped')
  const lines = looked.flatMap(({ name, state, text, mend }) => [
    `${WORDS[state].padEnd(STATE_WIDTH)}${name.padEnd(NAME_WIDTH)}${text}`,
    ...(mend === undefined ? [] : [`${' '.repeat(STATE_WIDTH + NAME_WIDTH)}→ ${mend}`]),
  ])
  const reasons = Map.groupBy(
    found.filter(({ state }) => state === 'skipped'),
    ({ text }) => text,
  )
  const skipped = [...reasons].map(
    ([reason, each]) => `not looked at: ${each.map(({ name }) => name).join(', ')} (${reason})`,
  )
  const { counts } = summarize(found)
  const end = `${toCount(counts.fault, 'fault')}, ${toCount(counts.warning, 'warning')}, ${counts.ok} in order, ${counts.skipped} not looked at.`
  return [...lines, ...(skipped.length === 0 ? [] : ['', ...skipped]), '', end].join('\n').trimStart()
}

export function toJson(found: readonly NamedFinding[]): string {
  const { state, counts } = summarize(found)
  return JSON.stringify({ state, counts, checks: found.map(({ name, ...rest }) => ({ name, ...rest })) }, undefined, 2)
}

function toCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
