import { stepTitles } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { SUBJECT_TITLE, type VerifierStep } from './checkSubject.ts'
import { groupSteps } from './groupSteps.ts'

const ids = [...Object.keys(stepTitles), 'subject'] as VerifierStep['id'][]
const steps = ids.map((id) => ({ id, title: SUBJECT_TITLE, status: 'pass', detail: '' }) as const)

test('every step is in one of six groups, and in no other', () => {
  const groups = groupSteps(steps)
  expect(groups).toHaveLength(6)
  expect(groups.flatMap((group) => group.steps.map(({ id }) => id)).toSorted()).toEqual(ids.toSorted())
})

test('a group is there before its first step', () => {
  expect(groupSteps([]).map((group) => group.steps)).toEqual([[], [], [], [], [], []])
})
