import { expect, test } from 'vitest'
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
  ['has another status', `write({ id, verdict: 'mock', steps: { format: 'ok' } })`, ['fault', 'fault', 'fault']],
])('a command that %s', async (_, onLine, expected) => {
  expect(await check(toCommand(onLine))).toEqual(expected)
})

test('a command that hangs at one request', async () => {
  expect(await check(toCommand(`while (id === 2); write({ id, error: 'x' })`), 1_000)).toEqual([ok, 'fault', ok])
})

test('a command that does not exist', async () => {
  expect(await check(['/no/such/command'])).toEqual(['fault', 'fault', 'fault'])
})
