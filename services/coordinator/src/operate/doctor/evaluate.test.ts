import { describe, expect, test } from 'vitest'
import type { EnclaveTerms } from '../../sign/enclave/keyEnclave.ts'
import { evaluateBalance, evaluateHead } from './chain.ts'
import type { Finding } from './check.ts'
import { createTimes, evaluateTimes } from './clock.ts'
import { evaluateSchema } from './database.ts'
import { compareTerms, evaluateDates, evaluateQuoteTime } from './enclave.ts'
import { evaluateWitness } from './log.ts'
import { describeError, findCode, toShownUrl } from './reasons.ts'
import { checkNode, evaluatePolicy, evaluateSpace } from './settings.ts'
import { evaluateAnswer } from './signIn.ts'
import { evaluateCookies, evaluateOrigins, evaluateProxies } from './web.ts'

const statesOf = (found: Finding | readonly Finding[]) => [found].flat().map(({ state }) => state)
const DAY = 86_400_000

test.each([
  ['24.0.0', 'ok'],
  ['30.1.0', 'ok'],
  ['22.9.0', 'fault'],
  ['garbage', 'fault'],
])('Node %s: %s', (version, state) => expect(checkNode(version).state).toBe(state))

test.each([
  [2 ** 40, 'ok'],
  [2 ** 30 - 1, 'warning'],
  [2 ** 26, 'fault'],
  [0, 'fault'],
])('%i free bytes: %s', (bytes, state) => expect(evaluateSpace(bytes).state).toBe(state))

test.each([
  [30, 'ok'],
  [4, 'warning'],
])('collateral that expires in %i days: %s', (days, state) =>
  expect(evaluateDates({ notBefore: 0, notAfter: days * DAY, now: 0 }).state).toBe(state),
)

test.each([
  [39, false, 'ok', undefined],
  [200, false, 'ok', undefined],
  [201, false, 'warning', /network/],
  [1_015, false, 'warning', /once a second/],
  [1_015, true, 'ok', undefined],
])('a quote of %i ms, simulated %s: %s', (ms, isMock, state, fix) => {
  const found = evaluateQuoteTime('attested', { ms, isMock })
  expect(found.state).toBe(state)
  expect(found.text).toContain(`${ms} ms`)
  if (fix !== undefined) expect(found.fix).toMatch(fix)
})

test.each([
  [59_000, false, 'ok'],
  [600_000, false, 'warning'],
  [7_200_000, false, 'fault'],
  [7_200_000, true, 'ok'],
])('a block of %i ms, local %s: %s', (ageMs, isLocal, state) =>
  expect(evaluateHead({ ageMs, isLocal }).state).toBe(state),
)

test.each([
  [0n, 1n, 'fault'],
  [99n, 1n, 'warning'],
  [100n, 1n, 'ok'],
  [0n, 0n, 'ok'],
])('%i wei, %i for each: %s', (balance, price, state) =>
  expect(evaluateBalance({ account: '0x', balance, price }).state).toBe(state),
)

test.each([
  [{ taken: [], toCome: ['a'], foreign: [] }, 'ok'],
  [{ taken: ['a'], toCome: [], foreign: [] }, 'ok'],
  [{ taken: ['a'], toCome: ['b'], foreign: [] }, 'warning'],
  [{ taken: ['a', 'c'], toCome: ['b'], foreign: ['c'] }, 'fault'],
])('a schema %j: %s', (schema, state) => expect(evaluateSchema(schema).state).toBe(state))

describe('the clock', () => {
  const at = (source: string, aheadMs: number) => ({ source, aheadMs, precisionMs: 1000 })
  test.each([
    [[at('a', 0), at('b', 2000), at('c', -2000)], ['ok'], /a, b, c/],
    [[at('a', 20_000)], ['warning'], /20 s behind the clock of a/],
    [[at('a', -60_000), at('b', -61_000)], ['fault'], /ahead of the clock of/],
    // Two of three agree with us, so the third is wrong.
    [[at('a', 0), at('b', 100), at('c', 999_000)], ['warning'], /the clock of c is 999 s ahead of ours/],
    [[], ['skipped'], /reported its time/],
  ])('%j: %j', (seen, states, text) => {
    const found = [evaluateTimes(seen)].flat()
    expect(statesOf(found)).toEqual(states)
    expect(found[0]?.text).toMatch(text)
  })

  test('keeps the most precise time of a source, and adds half of its rounding', () => {
    const times = createTimes()
    times.note({ source: 'x', at: 1000, from: 0, until: 4000, precisionMs: 1000 })
    times.note({ source: 'x', at: 5000, from: 5400, until: 5600, precisionMs: 1000 })
    expect(times.seen()).toEqual([{ source: 'x', aheadMs: 0, precisionMs: 1200 }])
  })
})

describe('web checks', () => {
  test.each([
    ['https://api.example.com', ['https://app.example.com'], 'lax', ['ok']],
    ['https://api.example.co.uk', ['https://app.other.co.uk'], 'lax', ['fault']],
    ['https://a.github.io', ['https://b.github.io'], 'strict', ['fault']],
    ['https://api.example.com', ['https://app.other.com', 'https://example.com'], 'none', ['warning']],
    // The scheme is part of the site.
    ['https://api.example.com', ['http://app.example.com'], 'lax', ['fault']],
    ['http://localhost:8080', ['http://localhost:5173'], 'lax', ['ok']],
    ['https://10.0.0.1', ['https://10.0.0.2'], 'lax', ['fault']],
    ['https://[::1]:1', ['https://[::1]:2'], 'lax', ['ok']],
  ] as const)('%s with pages %j and %s: %j', (publicUrl, allowedOrigins, sameSite, states) =>
    expect(statesOf(evaluateCookies({ publicUrl, allowedOrigins, sameSite }))).toEqual(states),
  )

  test('warns about loopback pages in production, and reports plain http as a fault', () => {
    const origins = ['http://localhost:5173', 'http://app.example.com', 'https://app.example.com']
    expect(statesOf(evaluateOrigins(origins, { isProduction: true }))).toEqual(['warning', 'fault'])
    expect(statesOf(evaluateOrigins(origins, { isProduction: false }))).toEqual(['fault'])
  })

  test.each([
    [[], false, ['ok']],
    [[], true, ['warning']],
    [['10.0.0.0/8', '::1', 'fd00::/16'], true, ['ok']],
    [['0.0.0.0/0'], true, ['fault']],
    [['10.0.0.1', '::/0', '0.0.0.0/1'], true, ['fault', 'fault']],
    [['proxy.example.com'], true, ['fault']],
  ])('proxies %j, https %s: %j', (entries, isBehind, states) =>
    expect(statesOf(evaluateProxies(entries, { isBehind }))).toEqual(states),
  )

  test.each([
    [{ status: 302, location: '/interaction/x' }, 'ok'],
    [{ status: 200, location: '' }, 'ok'],
    [{ status: 400, location: '' }, 'fault'],
    [{ status: 302, location: 'https://accounts.google.com/signin/oauth/error?authError=x' }, 'fault'],
    [{ status: 403, location: '' }, 'warning'],
    [{ status: 401, location: '' }, 'fault'],
    [undefined, 'warning'],
  ])('a provider that returns %j: %s', (answer, state) =>
    expect(evaluateAnswer(answer, { where: 'x', redirectUri: 'y', id: 'z' }).state).toBe(state),
  )
})

describe('the policy', () => {
  const real = '12'.repeat(24) + '34'.repeat(24)
  const zeros = '00'.repeat(48)
  const whole = {
    mrTd: real,
    rtmr0: real,
    rtmr1: real,
    rtmr2: real,
    rtmr3: zeros,
    mrConfigId: zeros,
    mrOwner: zeros,
    mrOwnerConfig: zeros,
  }
  const hash = '12'.repeat(16) + '34'.repeat(16)
  test.each([
    [{ measurements: [whole], configHashes: [hash] }, ['ok']],
    [{ measurements: [{ mrTd: real }], configHashes: [hash] }, ['warning']],
    [{ measurements: [{ ...whole, mrTd: zeros }], configHashes: [hash] }, ['fault']],
    [{ measurements: [{ ...whole, rtmr1: 'ab'.repeat(48) }], configHashes: [hash] }, ['fault']],
    [{ measurements: [whole], configHashes: ['11'.repeat(32), hash] }, ['fault']],
  ])('%j: %j', (policy, states) => expect(statesOf(evaluatePolicy(policy))).toEqual(states))
})

describe('settings of enclave and coordinator', () => {
  const key = 'ab'.repeat(32)
  const terms = (changes: Partial<EnclaveTerms['settings']> = {}, version = '1'): EnclaveTerms => ({
    config: {
      issuers: [{ issuer: 'https://a.example', audience: 'app', jwksOrigin: 'https://a.example' }],
      caSet: 'public',
      rootSecret: 'dstack',
      quoteSource: 'dstack',
      callerPolicy: 'snp',
      version,
    },
    settings: { entropy: [{ kind: 'satellite', key }], log: null, implementations: [], sessions: 'any', ...changes },
  })
  const provider = { id: 'a', issuer: 'https://a.example', clientId: 'app', clientSecret: 'x', name: 'A', icon: '' }
  const shared = { maxAgeMs: 60_000, allowUnsigned: false, url: '' }
  const ours = {
    providers: [provider],
    entropy: { kind: 'satellite' as const, publicKeys: [key], ...shared },
    witnesses: [],
    receiptVersion: 1 as const,
  }
  const log = { origins: ['x'], witnesses: ['y'], quorum: 1 }
  test.each([
    ['that match', [terms()], ours, ['ok']],
    ['with enclaves of two versions', [terms(), terms({}, '2')], ours, ['fault']],
    ['with another client', [terms()], { ...ours, providers: [{ ...provider, clientId: 'other' }] }, ['fault']],
    ['with another entropy key', [terms({ entropy: [{ kind: 'unsigned' }] })], ours, ['fault']],
    ['with unsigned entropy', [terms()], { ...ours, entropy: { ...ours.entropy, allowUnsigned: true } }, ['fault']],
    ['with a log only at the enclave', [terms({ log })], ours, ['fault']],
  ])('%s', (_, all, config, states) => expect(statesOf(compareTerms(all, config))).toEqual(states))
})

test.each([
  [{ outcome: 'unavailable', reason: 'it answered with status 400' }, 'ok'],
  [{ outcome: 'unknown_log', reason: 'it does not know this log' }, 'warning'],
  [{ outcome: 'unavailable', reason: 'ECONNREFUSED' }, 'warning'],
  [{ outcome: 'unavailable', reason: 'it answered with status 502' }, 'warning'],
])('a witness that answers %j: %s', (answer, state) => expect(evaluateWitness('w', answer).state).toBe(state))

test('shows no foreign messages and no secret parts of addresses', () => {
  const cause = Object.assign(new Error('canary'), { code: 'ECONNREFUSED' })
  expect(findCode(new TypeError('canary', { cause }))).toBe('ECONNREFUSED')
  expect(findCode(new AggregateError([cause]))).toBe('ECONNREFUSED')
  expect(findCode(Object.assign(new Error(), { code: 'canary with words' }))).toBeUndefined()
  expect(describeError(new Error('canary', { cause: new Error('canary') }))).toBe('Error')
  expect(describeError('canary')).toBe('string')
  expect(toShownUrl('https://user:canary@rpc.example:8545/canary?key=canary#canary')).toBe('https://rpc.example:8545')
  expect(toShownUrl('canary')).toBe('an invalid address')
})
