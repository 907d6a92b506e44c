import { execFileSync, spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const PYTHON = '/usr/bin/python3'
const isReady = spawnSync(PYTHON, ['-c', 'import cryptography, Cryptodome.Hash']).status === 0
if (!isReady)
  console.log(`skipped: the verifier in Python needs ${PYTHON} with python3-cryptography and python3-pycryptodome`)

it.runIf(isReady)('passes the tests of the verifier in Python', () => {
  const result = spawnSync(PYTHON, ['-m', 'unittest', 'discover', '-s', 'test'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  })
  expect(result.stderr).toMatch(/\nOK\n$/)
})

it.runIf(isReady)('answers garbage on a line with an error, and goes on', () => {
  const input = [
    '{',
    '[]',
    'null',
    '{"id":1}',
    '{"id":2,"receipt":7}',
    '{"id":3,"car":""}',
    '{"id":4,"receipt":""}',
    '',
  ].join('\n')
  const answers = execFileSync(PYTHON, ['-m', 'countersign_verify', '--lines'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    input,
  })
  const lines = answers
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.map(({ id, error, verdict }) => [id, error ?? verdict])).toEqual([
    [null, 'request_malformed'],
    [null, 'request_malformed'],
    [null, 'request_malformed'],
    [1, 'request_malformed'],
    [2, 'request_malformed'],
    [3, 'car_malformed'],
    [4, 'failed'],
  ])
})
