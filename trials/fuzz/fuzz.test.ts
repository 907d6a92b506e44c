import { describe, test } from 'vitest'
import { createSubjects } from './createSubjects.ts'
import { fuzz } from './fuzz.ts'

const subjects = await createSubjects()

describe('whatever comes in, a parser answers or throws a typed error', () => {
  test.each(subjects.map((subject) => [subject.name, subject] as const))(
    '%s',
    async (_, subject) => {
      await fuzz(subject, { runs: 300, seed: 20260615 })
    },
    60_000,
  )
})
