import { expect, test } from 'vitest'
import { type Check, fault, ok, skipped, warning } from './check.ts'
import { runChecks } from './diagnose.ts'

const run = (checks: Check[], settings: string[] = []) =>
  runChecks({ checks, faults: settings.map((setting) => ({ setting, problem: 'odd', fix: '' })), timeoutMs: 20 })
const states = async (checks: Check[], faults?: string[]) =>
  (await run(checks, faults)).map(({ name, state, text }) => `${name}: ${state}, ${text}`)

test('a check that hangs or throws is a fault, and the others run', async () => {
  const found = await run([
    { name: 'database', run: () => new Promise(() => {}) },
    { name: 'enclave', run: async () => Promise.reject(new Error('canary-text')) },
    {
      name: 'entropy',
      run: () => {
        throw new TypeError('canary-text')
      },
    },
    { name: 'node', run: async () => ok('v24') },
  ])
  expect(found).toEqual([
    { name: 'database', ...fault('no answer in 0.02 s', expect.stringContaining('--timeout')) },
    { name: 'enclave', ...fault('the check failed: Error', expect.any(String)) },
    { name: 'entropy', ...fault('the check failed: TypeError', expect.any(String)) },
    { name: 'node', ...ok('v24') },
  ])
})

test('skips a check that needs a failed check, and passes on the reason of a skipped one', async () => {
  const never = () => Promise.reject(new Error('not to be run'))
  const found = await states([
    { name: 'chain', run: async () => fault('x', 'Y.') },
    { name: 'balance', needs: ['chain'], run: never },
    { name: 'pins', run: async () => skipped('nothing is published') },
    { name: 'chain-head', needs: ['pins'], run: never },
    { name: 'clock', after: ['chain', 'pins', 'tls'], run: async () => ok('after all') },
    { name: 'log', needs: ['clock'], run: async () => warning('w', 'M.') },
  ])
  expect(found).toEqual([
    'chain: fault, x',
    'balance: skipped, needs: chain',
    'pins: skipped, nothing is published',
    'chain-head: skipped, nothing is published',
    'clock: ok, after all',
    'log: warning, w',
  ])
})

test('skips a check if a setting that it reads is invalid, and only then', async () => {
  const checks: Check[] = [{ name: 'entropy', settings: /^ENTROPY_/, run: async () => ok('asked') }]
  expect(await states(checks, ['ENTROPY_URL'])).toEqual(['entropy: skipped, ENTROPY_URL is invalid'])
  expect(await states(checks, ['A, ENTROPY_X'])).toEqual(['entropy: skipped, ENTROPY_X is invalid'])
  expect(await states(checks, ['COOKIE_SAMESITE', 'MY_ENTROPY_URL'])).toEqual(['entropy: ok, asked'])
})
