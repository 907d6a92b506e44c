import { describe, test } from 'vitest'
import { createSubjects, fuzz } from './fuzz.ts'

const subjects = await createSubjects()

describe('a parser answers every input or throws a typed error', () => {
  test.each(subjects.map((subject) => [subject.name, subject] as const))(
    '%s',
    async (_, subject) => {
      await fuzz(subject, { runs: 300, seed: 20260615 })
    },
    60_000,
  )
})
