import type { Report, Row, Stack } from '../report.ts'
import { toFigure } from '../table.ts'
import type { Budget } from './measureBudgets.ts'

/** Less is in the JSON only. */
const SMALLEST_MS = 0.003
const OTHERS = 5

/** `before` is of another checkout. */
export function toBudgetReport(own: Budget, before: Budget | undefined, setting: string): Report {
  const toRow = (name: string, read: (budget: Budget) => number): Row => {
    const value = read(own)
    const ratio = before === undefined ? [] : [{ value: value / read(before), to: 'the other checkout' }]
    return { name, value, unit: 'ms', ratios: ratio.filter((each) => Number.isFinite(each.value)) }
  }
  const sum = (values: readonly { ms: number }[]) => values.reduce((total, { ms }) => total + ms, 0)
  const rows = [
    toRow('all', ({ threads }) => sum(threads)),
    ...own.threads.flatMap(({ name, parts }) => {
      const ofThread = ({ threads }: Budget) => threads.find((thread) => thread.name === name)
      const details = parts.map(({ stage }) =>
        toRow(`${name}: ${stage}`, (budget) => ofThread(budget)?.parts.find((part) => part.stage === stage)?.ms ?? 0),
      )
      return [toRow(name, (budget) => ofThread(budget)?.ms ?? 0), ...(details.length > 1 ? details : [])]
    }),
  ]
  const others = own.others.slice(0, OTHERS).map(({ name, ms }) => `\`${name}\` ${toFigure(ms)} ms`)
  return {
    suite: 'budget',
    title: 'Where the processor time of a signature goes',
    setting,
    rows: rows.filter(({ value }) => value >= SMALLEST_MS),
    notes: others.length === 0 ? [] : [`The largest of what belongs to no stage (other): ${others.join(', ')}.`],
    stacks: toStacks(own, before),
    details: { own, before },
  }
}

function toStacks(own: Budget, before: Budget | undefined): Stack[] {
  const toStack = (label: string, budget: Budget, name: string) => {
    const parts = budget.threads.find((thread) => thread.name === name)?.parts ?? []
    return { name: label, parts: parts.map(({ stage, ms }) => ({ name: stage, value: ms })) }
  }
  return own.threads
    .filter(({ ms }) => ms >= SMALLEST_MS)
    .flatMap(({ name }) => [
      toStack(name, own, name),
      ...(before === undefined ? [] : [toStack(`${name}, the other checkout`, before, name)]),
    ])
}
