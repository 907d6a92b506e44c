import { expect, test } from 'vitest'
import { createLog } from './log.ts'

function createTestLog() {
  const lines: string[] = []
  return { log: createLog({ write: (line) => void lines.push(line) }), lines }
}

test('a line is JSON with its time, its level and the listed fields', () => {
  const { log, lines } = createTestLog()
  log.info({ msg: 'Answered a request', requestId: 'r1', method: 'GET', route: '/health', status: 200, durationMs: 3 })
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    msg: 'Answered a request',
    requestId: 'r1',
    method: 'GET',
    route: '/health',
    status: 200,
    durationMs: 3,
  })
})

test.each(['info', 'warn', 'error'] as const)('%s leaves out every field that is not listed', (level) => {
  const { log, lines } = createTestLog()
  const fields = ['sid', 'grant', 'idToken', 'loginSecret', 'email', 'cookie', 'authorization', 'err', 'Msg', 'body']
  log[level]({ msg: 'Something happened', ...Object.fromEntries(fields.map((name) => [name, `canary-${name}`])) })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('canary')
  expect(Object.keys(JSON.parse(lines[0] ?? '')).sort()).toEqual(['level', 'msg', 'time'])
})

test('members of the prototype are no fields', () => {
  const { log, lines } = createTestLog()
  log.info(Object.assign(Object.create({ reason: 'canary' }), { msg: 'Something happened' }))
  expect(lines[0]).not.toContain('canary')
})

test('a value cannot start a line of its own', () => {
  const { log, lines } = createTestLog()
  log.warn({ msg: 'Something happened', reason: 'a\n{"level":50,"msg":"forged"}' })
  expect(lines.join('').trim().split('\n')).toHaveLength(1)
})
