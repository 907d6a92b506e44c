import { describe, test } from 'vitest'
import { createSubjects, fuzz } from './properties.ts'

describe('whatever comes in, a parser answers or throws a typed error', () => {
  test.each(createSubjects().map((subject) => [subject.name, subject] as const))(
    '%s',
    async (_, subject) => {
      await fuzz(subject, { runs: 300, seed: 20260615 })
    },
    60_000,
  )
})
