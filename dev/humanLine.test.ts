import { describe, expect, test } from 'vitest'
import { toHumanLine } from './humanLine.ts'

describe('a log line for people', () => {
  test.each([
    ['info', 'info'],
    ['error', 'error'],
    ['loud', 'info'],
  ])('shows level %j as %s', (level, expected) => {
    expect(toHumanLine(JSON.stringify({ level, msg: 'Pinned receipt' }))).toEqual({
      level: expected,
      text: 'Pinned receipt',
      details: '',
    })
  })

  test('shows the fields without level and time, and quotes texts with spaces', () => {
    const fields = { level: 'warn', time: '2026-03-10T12:00:00Z', msg: 'Could not pin', slug: 'abc', durationMs: 4 }
    expect(toHumanLine(JSON.stringify({ ...fields, reason: 'not\nthere', code: '' }))).toEqual({
      level: 'warn',
      text: 'Could not pin',
      details: 'slug=abc durationMs=4 reason="not\\nthere" code=""',
    })
  })

  test.each(['', 'plain', '{"level":', '[1]', 'null', '5', '{"msg":5}', '{"level":"error"}'])(
    'leaves %j unchanged',
    (line) => {
      expect(toHumanLine(line)).toEqual({ level: 'info', text: line, details: '' })
    },
  )
})
