import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { createLog, createTurnWriter } from './log.ts'

function createTestLog() {
  const lines: string[] = []
  return { log: createLog({ write: (line) => void lines.push(line), flush() {} }), lines }
}

test('a line is JSON with its time, level and the listed fields', () => {
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

test('a failed sign-in names its provider', () => {
  const { log, lines } = createTestLog()
  log.warn({ msg: 'Could not sign a user in', provider: 'google', code: 'provider_unavailable', reason: 'x' })
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ provider: 'google', code: 'provider_unavailable', reason: 'x' })
})

test.each(['info', 'warn', 'error'] as const)('%s drops fields that are not listed', (level) => {
  const { log, lines } = createTestLog()
  const fields = ['sid', 'grant', 'idToken', 'loginSecret', 'email', 'cookie', 'authorization', 'err', 'Msg', 'body']
  log[level]({ msg: 'Something happened', ...Object.fromEntries(fields.map((name) => [name, `canary-${name}`])) })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('canary')
  expect(Object.keys(JSON.parse(lines[0] ?? '')).sort()).toEqual(['level', 'msg', 'time'])
})

test('does not read members of the prototype', () => {
  const { log, lines } = createTestLog()
  log.info(Object.assign(Object.create({ reason: 'canary' }), { msg: 'Something happened' }))
  expect(lines[0]).not.toContain('canary')
})

test('a value cannot start a new line', () => {
  const { log, lines } = createTestLog()
  log.warn({ msg: 'Something happened', reason: 'a\n{"level":50,"msg":"forged"}' })
  expect(lines.join('').trim().split('\n')).toHaveLength(1)
})

/** A process that records its output. */
function createOutput() {
  const written: string[] = []
  const process = Object.assign(new EventEmitter(), {
    stdout: Object.assign(new EventEmitter(), { write: (text: string) => written.push(text) > 0 }),
  })
  return { ...createTurnWriter(process as never), process, written }
}

test('writes all lines of one turn of the event loop together and in order', async () => {
  const { write, written } = createOutput()
  write('1\n')
  write('2\n')
  expect(written).toEqual([])
  await new Promise((resolve) => setImmediate(resolve))
  write('3\n')
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['1\n2\n', '3\n'])
})

test.each(['warn', 'error'] as const)('writes %s immediately, after earlier lines', (level) => {
  const { written, ...output } = createOutput()
  const log = createLog(output)
  log.info({ msg: 'First' })
  log[level]({ msg: 'Second' })
  expect(written.map((text) => text.split('\n').map((line) => line && JSON.parse(line).msg))).toEqual([
    ['First', 'Second', ''],
  ])
})

test('writes the last lines once when the process exits', async () => {
  const { write, process, written } = createOutput()
  write('the last\n')
  process.emit('exit')
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['the last\n'])
})

test('survives a closed output', () => {
  const { process } = createOutput()
  expect(() => process.stdout.emit('error', new Error('EPIPE'))).not.toThrow()
})
