import { expect, test } from 'vitest'
import type { Request } from './protocol.ts'
import { readCases } from './readCases.ts'
import { AnswerError, startVerifier } from './startVerifier.ts'

const { cases, toRequest } = readCases()
const requests = cases.slice(0, 3).map(toRequest)

/** A command that runs `onLine` for each line: a number of the line and its request. */
const toCommand = (onLine: string) => [
  process.execPath,
  '-e',
  `let at = 0
  const write = (value) => console.log(JSON.stringify(value))
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id } = JSON.parse(line)
    at += 1
    ${onLine}
  })`,
]

async function check(command: string[], timeoutMs?: number): Promise<string[]> {
  const verifier = startVerifier(command, timeoutMs === undefined ? {} : { timeoutMs })
  const answers = await Promise.allSettled(requests.map((request) => verifier.check(request)))
  verifier.close()
  return answers.map((answer) => {
    if (answer.status === 'fulfilled') return JSON.stringify(answer.value)
    return answer.reason instanceof AnswerError ? 'fault' : 'error'
  })
}

const ok = '{"error":"x"}'

test.each<[string, string, string[]]>([
  ['answers', `write({ id, error: 'x' })`, [ok, ok, ok]],
  ['crashes at one request', `if (id === 2) process.exit(3); write({ id, error: 'x' })`, [ok, 'fault', ok]],
  ['crashes at each request', `process.abort()`, ['fault', 'fault', 'fault']],
  ['answers in another order', `write({ id: id === 1 ? 2 : id, error: 'x' })`, ['fault', ok, ok]],
  ['answers twice', `write({ id, error: 'x' }); write({ id, error: 'x' })`, [ok, 'fault', ok]],
  ['answers with other text', `if (id === 2) console.log('hello'); write({ id, error: 'x' })`, [ok, 'fault', ok]],
  ['answers with null', `write(id === 3 ? null : { id, error: 'x' })`, [ok, ok, 'fault']],
  ['answers without steps', `write(id === 1 ? { id, verdict: 'mock' } : { id, error: 'x' })`, ['fault', ok, ok]],
  ['writes 2 MB', `write({ id, error: 'x'.repeat(id === 2 ? 2e6 : 1) })`, [ok, 'fault', ok]],
  ['has another status', `write({ id, verdict: 'mock', steps: { format: 'ok' } })`, ['fault', 'fault', 'fault']],
])('a command that %s', async (_, onLine, expected) => {
  expect(await check(toCommand(onLine))).toEqual(expected)
})

test('a command that hangs at one request', async () => {
  expect(await check(toCommand(`while (id === 2); write({ id, error: 'x' })`), 1_000)).toEqual([ok, 'fault', ok])
})

test('a command whose text could forge lines of a terminal', async () => {
  const verifier = startVerifier(toCommand(`console.log('\\x1b[2J\\r\\u202e')`))
  const reason = await verifier.check(requests[0] as Request).catch((error: Error) => error.message)
  verifier.close()
  expect(reason).not.toMatch(/[\p{Cc}\p{Cf}]/u)
})

test('a command that does not exist', async () => {
  expect(await check(['/no/such/command'])).toEqual(['fault', 'fault', 'fault'])
})
