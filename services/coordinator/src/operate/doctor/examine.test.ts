import { expect, test } from 'vitest'
import { type Check, fault, ok, skipped, warning } from './check.ts'
import { runChecks } from './examine.ts'

const run = (checks: Check[], settings: string[] = []) =>
  runChecks({ checks, faults: settings.map((setting) => ({ setting, problem: 'odd', fix: '' })), timeoutMs: 20 })
const states = async (checks: Check[], faults?: string[]) =>
  (await run(checks, faults)).map(({ name, state, text }) => `${name}: ${state}, ${text}`)

test('one that hangs, whatever it does with its signal, and one that throws are faults of their own; the others go on', async () => {
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
    { name: 'enclave', ...fault('could not be looked at: Error', expect.any(String)) },
    { name: 'entropy', ...fault('could not be looked at: TypeError', expect.any(String)) },
    { name: 'node', ...ok('v24') },
  ])
})

test('what needs a fault says so, and what needs something that was not looked at gives the same reason', async () => {
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
    'balance: skipped, it needs: chain',
    'pins: skipped, nothing is published',
    'chain-head: skipped, nothing is published',
    'clock: ok, after all',
    'log: warning, w',
  ])
})

test('a check is not run where a setting that it goes by has a fault; another fault does not matter', async () => {
  const checks: Check[] = [{ name: 'entropy', settings: /^ENTROPY_/, run: async () => ok('asked') }]
  expect(await states(checks, ['ENTROPY_URL'])).toEqual(['entropy: skipped, ENTROPY_URL has a fault'])
  expect(await states(checks, ['A, ENTROPY_X'])).toEqual(['entropy: skipped, ENTROPY_X has a fault'])
  expect(await states(checks, ['COOKIE_SAMESITE', 'MY_ENTROPY_URL'])).toEqual(['entropy: ok, asked'])
})
