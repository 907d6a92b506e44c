import type { VaultBudgetInfo } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { agent, budgeted, ETHER, limited } from '../../policy/test/policies.ts'
import { type BudgetProofOptions, createBudgetProof } from '../test/budgetProof.ts'
import { withCode } from '../test/withCode.ts'
import { checkVaultBudget } from './checkVaultBudget.ts'
import { findNewestLog } from './findNewestLog.ts'

const DAY_S = 86_400
const timeS = 20_000 * DAY_S + 100
const spent = [6_000_000n, 70_000_000n, 0n]
const prove = (change: Partial<BudgetProofOptions> = {}) =>
  createBudgetProof({ policy: budgeted, spent, timeS, ...change })
const change = (part: Partial<NonNullable<VaultBudgetInfo['proof']>>): VaultBudgetInfo => {
  const answer = prove()
  return { ...answer, proof: answer.proof && { ...answer.proof, ...part } }
}
const flip = (hex = '') => (hex.startsWith('0') ? '1' : '0') + hex.slice(1)
const { proof } = prove()
const refused = withCode('budget_not_proven')

test('reads what was spent and what is left from the state, not from the service’s words', () => {
  const answer = { ...prove(), budgets: [], revoked: [], time: 0 }
  expect(checkVaultBudget(budgeted, answer)).toEqual({
    timeS,
    budgets: [
      { spent: 6_000_000n, left: 4_000_000n, endsS: 20_001 * DAY_S },
      { spent: 70_000_000n, left: 30_000_000n, endsS: null },
      { spent: 0n, left: ETHER / 100n, endsS: 20_000 * DAY_S + 3_600 },
    ],
    revoked: [],
  })
})

test('shows a new period once the witnesses’ time has reached it', () => {
  const window = 19_999
  expect(checkVaultBudget(budgeted, prove({ window }))?.budgets).toMatchObject([
    { spent: 0n, left: 10_000_000n, endsS: 20_001 * DAY_S },
    { spent: 70_000_000n },
    { spent: 0n },
  ])
})

test('names the revoked agents', () => {
  const at = budgeted.approvers.findIndex(({ type }) => type === 'key')
  expect(checkVaultBudget(budgeted, prove({ revoked: 1 << at }))?.revoked).toEqual([agent.approver.publicKey])
})

test('is null without a proof, if nothing has been counted', () => {
  expect(checkVaultBudget(budgeted, { proof: null, sequence: 0 })).toBeNull()
  expect(() => checkVaultBudget(budgeted, { proof: null, sequence: 1 })).toThrow(refused)
})

test('accepts only the state of the vault’s own key', () => {
  const keyId = 'b2'.repeat(16)
  expect(checkVaultBudget(budgeted, prove({ keyId }), { keyId })).not.toBeNull()
  expect(() => checkVaultBudget(budgeted, prove(), { keyId })).toThrow(refused)
})

test.each([
  ['the last entry, of any age', 0, 86_400, true],
  ['an earlier entry of the last minute', 3, 60, true],
  ['an earlier entry, which may hide payments', 3, 61, false],
])('%s', (_, later, ageS, isAccepted) => {
  const toEntry = (root: string, rows: number) =>
    ({ kind: 'table', rows, root, timeMs: 1000 * (timeS - ageS) }) as const
  const check = () => checkVaultBudget(budgeted, prove({ later, toEntry }))
  if (isAccepted) expect(check()).toMatchObject({ timeS })
  else expect(check).toThrow(refused)
})

describe('rejects', () => {
  test.each<[string, VaultBudgetInfo]>([
    ['another state', change({ state: flip(proof?.state) })],
    ['a state with another amount', change({ state: prove({ spent: [0n, 0n, 0n] }).proof?.state ?? '' })],
    ['a state of fewer budgets', change({ state: proof?.state.slice(0, -80) ?? '' })],
    ['a malformed state', change({ state: '00' })],
    ['another row', change({ row: 1 })],
    ['a row outside the table', change({ row: 4 })],
    ['a shorter path', change({ path: proof?.path.slice(1) ?? [] })],
    ['another path', change({ path: proof?.path.map(flip) ?? [] })],
    ['another entry', change({ entry: proof?.entry.replace(/.$/, (last) => flip(last)) ?? '' })],
    ['another index', change({ index: 3 })],
    ['another path of the entry', change({ entryPath: proof?.entryPath.map(flip) ?? [] })],
    ['an older checkpoint', change({ checkpoint: prove({ spent: [] }).proof?.checkpoint ?? '' })],
    ['a checkpoint of too few witnesses', prove({ witnesses: [1] })],
    ['a checkpoint of other witnesses', prove({ witnesses: [4, 5, 6] })],
    ['one witness twice', prove({ witnesses: [1, 1] })],
    ['a checkpoint of another log', prove({ origin: 'log.vault.example/2' })],
    ['text that is not a note', change({ checkpoint: 'note' })],
    [
      'an entry of another kind',
      prove({ toEntry: (leaf) => ({ kind: 'signature', keyId: '00'.repeat(16), leaf, timeMs: 0 }) }),
    ],
    ['a table with fewer rows', prove({ toEntry: (root) => ({ kind: 'table', rows: 3, root, timeMs: 0 }) })],
  ])('%s', (_, answer) => {
    expect(() => checkVaultBudget(budgeted, answer)).toThrow(refused)
  })

  test('a proof for a policy without a log', () => {
    expect(() => checkVaultBudget({ ...limited, budgets: budgeted.budgets }, prove())).toThrow(refused)
  })
})

test('finds the log that the witnesses cosigned last', () => {
  const noteOf = (options: Partial<BudgetProofOptions>) => prove(options).proof?.checkpoint ?? ''
  const [old, current, refused] = [
    noteOf({ origin: 'log.example/old', timeS: timeS - 60 }),
    noteOf({ origin: 'log.example/current' }),
    noteOf({ origin: 'log.example/other', timeS: timeS + 60, witnesses: [1, 4] }),
  ]
  const log = budgeted.log ?? { witnesses: [], quorum: 1 }
  expect(findNewestLog([old, current, refused, 'note'], log)).toBe('log.example/current')
  expect(findNewestLog([refused], log)).toBeUndefined()
})
