import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { createLog, createTurnWriter } from './log.ts'

function createTestLog() {
  const lines: string[] = []
  return { log: createLog({ write: (line) => void lines.push(line), flush() {} }), lines }
}

test('a line is JSON with its time, its level and the listed fields', () => {
  const { log, lines } = createTestLog()
  log.info({ msg: 'Answered a request', requestId: 'r1', method: 'GET', route: '/health', status: 200, durationMs: 3 })
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    msg: 'Answered a request',
    requestId: 'r1',
    method: 'GET',
    route: '/health',
    status: 200,
    durationMs: 3,
  })
})

test('a sign-in that failed says at which provider', () => {
  const { log, lines } = createTestLog()
  log.warn({ msg: 'Could not sign a user in', provider: 'google', code: 'provider_unavailable', reason: 'x' })
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ provider: 'google', code: 'provider_unavailable', reason: 'x' })
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

/** A process whose output is kept, as it was written. */
function createOutput() {
  const written: string[] = []
  const process = Object.assign(new EventEmitter(), {
    stdout: Object.assign(new EventEmitter(), { write: (text: string) => written.push(text) > 0 }),
  })
  return { ...createTurnWriter(process as never), process, written }
}

test('lines of one turn of the event loop are one write, in their order', async () => {
  const { write, written } = createOutput()
  write('1\n')
  write('2\n')
  expect(written).toEqual([])
  await new Promise((resolve) => setImmediate(resolve))
  write('3\n')
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['1\n2\n', '3\n'])
})

test.each(['warn', 'error'] as const)('%s is written at once, after what came before it', (level) => {
  const { written, ...output } = createOutput()
  const log = createLog(output)
  log.info({ msg: 'First' })
  log[level]({ msg: 'Second' })
  expect(written.map((text) => text.split('\n').map((line) => line && JSON.parse(line).msg))).toEqual([
    ['First', 'Second', ''],
  ])
})

test('a process that exits has written its last lines, once', async () => {
  const { write, process, written } = createOutput()
  write('the last\n')
  process.emit('exit')
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['the last\n'])
})

test('a reader of the log that has gone is no fault', () => {
  const { process } = createOutput()
  expect(() => process.stdout.emit('error', new Error('EPIPE'))).not.toThrow()
})
