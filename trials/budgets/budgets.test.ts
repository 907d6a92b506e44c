import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runBudgets } from './runBudgets.ts'

const run = (options: { only: string; 'without-counting': boolean }) =>
  withScope((scope) => runBudgets({ scope, say() {} }, { tries: 1, ...options }))

test('an operator with enclave and witness processes overspends no budget', async () => {
  const { faults, figures } = await run({ only: '', 'without-counting': false })
  expect(faults).toEqual([])
  expect(figures?.tries).toBeGreaterThan(3_000)
})

test('reports overspends if the counting is switched off', async () => {
  const { faults } = await run({ only: 'many at once', 'without-counting': true })
  expect(faults.join()).toContain('of 1600')
})
