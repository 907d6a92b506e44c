import { createEnclaveSettings, type EnclaveSettings, toEnclaveVersion } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { describeDifference, describeEnclave, type Enclave, findLosses } from './consent.ts'

const source = { kind: 'satellite', key: '11'.repeat(32) } as const
const withSessions = (sessions: EnclaveSettings['sessions']) => createEnclaveSettings([source], [], null, sessions)

function toEnclave(settings: EnclaveSettings): Enclave & { settings: EnclaveSettings } {
  return {
    config: {
      issuers: [{ issuer: 'https://a.example', audience: 'a', jwksOrigin: 'https://a.example' }],
      caSet: 'system',
      rootSecret: 'attested',
      quoteSource: 'mock',
      callerPolicy: 'any',
      version: toEnclaveVersion('1.2.3', settings),
    },
    settings,
    policy: {
      measurements: [],
      custodians: { keys: ['22'.repeat(32)], threshold: 1 },
    } as unknown as Enclave['policy'],
  }
}

const [bound, any] = [toEnclave(withSessions('bound')), toEnclave(withSessions('any'))]

describe('sessions', () => {
  test('are in the description of an enclave', () => {
    expect(describeEnclave(bound)).toContainEqual(['  sessions', 'bound (each has a browser key)'])
    expect(describeEnclave(any)).toContainEqual(['  sessions', 'any (a cookie is enough)'])
  })

  test('without a browser key are a loss if the old enclave allowed none', () => {
    expect(findLosses(bound, any)).toEqual(['sessions'])
    expect(findLosses(any, bound)).toEqual([])
    for (const one of [bound, any]) expect(findLosses(one, one)).toEqual([])
  })

  test('are a difference in either direction', () => {
    const lines = (from: Enclave, to: Enclave) =>
      describeDifference(from, to).filter(([name]) => name.endsWith('sessions'))
    const [old, fresh] = ['bound (each has a browser key)', 'any (a cookie is enough)']
    expect(lines(bound, any)).toEqual([
      ['- sessions', old],
      ['+ sessions', fresh],
    ])
    expect(lines(any, bound)).toEqual([
      ['- sessions', fresh],
      ['+ sessions', old],
    ])
    expect(lines(any, any)).toEqual([])
  })

  test('are no loss if a backup of version 0.1.0 has no settings', () => {
    expect(findLosses({ ...any, settings: undefined }, any)).toEqual([])
    expect(findLosses({ ...any, settings: undefined }, bound)).toEqual(['log', 'entropy'])
  })
})
