import { describe, expect, test } from 'vitest'
import { parseRootSecretPolicy } from './policy.ts'

const key = (first: string) => `${first.padStart(2, '0')}${'07'.repeat(31)}`
const registers = ['mrTd', 'rtmr0', 'rtmr1', 'rtmr2', 'rtmr3', 'mrConfigId', 'mrOwner', 'mrOwnerConfig']
const measurement = Object.fromEntries(registers.map((name) => [name, '11'.repeat(48)]))
const parse = (text: string, requirePlatforms = false) => parseRootSecretPolicy(text, { requirePlatforms })
const policy = { measurements: [measurement], custodians: { threshold: 2, keys: [key('9'), key('a')] } }

test('parses a policy, with its hash', () => {
  expect(parse(JSON.stringify(policy))).toEqual({
    policy,
    policyHash: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
})

test('its hash does not depend on order or white space', () => {
  const { custodians, measurements } = policy
  const one = parse(JSON.stringify(policy))
  const other = parse(JSON.stringify({ custodians, measurements }, undefined, 2))
  expect(other).toEqual(one)
})

describe('rejects', () => {
  const custodians = (changes: object) => ({ ...policy, custodians: { ...policy.custodians, ...changes } })
  const seventeen = Array.from({ length: 17 }, (_, index) => key(index.toString(16)))
  test.each<[string, unknown]>([
    ['a list', []],
    ['nothing', null],
    ['no measurements', { custodians: policy.custodians }],
    ['empty measurements', { ...policy, measurements: [] }],
    ...registers.map((name): [string, unknown] => {
      const { [name]: _, ...rest } = measurement
      return [`a measurement without ${name}, and a whole one`, { ...policy, measurements: [measurement, rest] }]
    }),
    ['a misspelt register', { ...policy, measurements: [{ ...measurement, MROWNER: '11'.repeat(48) }] }],
    ['a short measurement', { ...policy, measurements: [{ ...measurement, mrTd: '11'.repeat(47) }] }],
    ['a misspelt member', { ...policy, platform: ['00906ed50000'] }],
    ['configuration hashes, which it cannot hold', { ...policy, configHashes: ['11'.repeat(32)] }],
    ['empty statuses', { ...policy, statuses: [] }],
    ['an unknown status', { ...policy, statuses: ['Fine'] }],
    ['empty platforms', { ...policy, platforms: [] }],
    ['a platform that does not say what it names', { ...policy, platforms: ['00906ed50000'] }],
    ['a negative evaluation', { ...policy, minimumTcbEvaluationDataNumber: -1 }],
    ['no custodians', { measurements: policy.measurements }],
    ['a threshold of one', custodians({ threshold: 1 })],
    ['a threshold above the number of custodians', custodians({ threshold: 3 })],
    ['a threshold that is not a number', custodians({ threshold: '2' })],
    ['a custodian twice', custodians({ keys: [key('9'), key('9')] })],
    ['a custodian of small order', custodians({ keys: [key('9'), '00'.repeat(32)] })],
    ['a custodian in capitals', custodians({ keys: [key('9'), key('a').toUpperCase().replace('07', 'AB')] })],
    ['seventeen custodians', custodians({ keys: seventeen })],
    ['a misspelt member of custodians', custodians({ treshold: 2 })],
  ])('a policy with %s', (_, value) => {
    expect(parse(JSON.stringify(value))).toEqual({
      faults: expect.arrayContaining([expect.any(String)]),
    })
  })

  test('a policy for real hardware without platforms, by name', () => {
    expect(parse(JSON.stringify(policy), true)).toEqual({ faults: [expect.stringMatching(/^missing platforms/)] })
    expect(parse(JSON.stringify({ ...policy, platforms: [{ ppid: '11'.repeat(16) }] }), true)).toHaveProperty('policy')
  })

  test('a measurement that leaves registers open, with their names', () => {
    const { mrOwner: _, mrOwnerConfig: __, ...six } = measurement
    expect(parse(JSON.stringify({ ...policy, measurements: [measurement, six] }))).toEqual({
      faults: ['measurements[1] lacks mrOwner, mrOwnerConfig'],
    })
  })

  test.each([
    ['no JSON', '{'],
    ['a member twice', JSON.stringify(policy).replace('"threshold":2', '"threshold":3,"threshold":2')],
  ])('%s', (_, text) => {
    expect(parse(text)).toEqual({ faults: ['expected JSON without duplicate members'] })
  })
})
