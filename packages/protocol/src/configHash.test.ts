import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { assertEnclaveConfig, type EnclaveConfig, hashEnclaveConfig } from './configHash.ts'
import { toHex } from './hex.ts'

const one = { issuer: 'https://a.example', audience: 'app', jwksOrigin: 'https://keys.a.example' }
const two = { issuer: 'https://b.example', audience: 'app', jwksOrigin: 'https://b.example' }
const config: EnclaveConfig = {
  issuers: [one, two],
  caSet: 'public',
  rootSecret: 'dstack',
  quoteSource: 'configfs',
  callerPolicy: 'snp',
  version: '1.0.0',
}

describe('hash of the enclave configuration', () => {
  test('is SHA-256 of the canonical JSON', () => {
    const json =
      '{"caSet":"public","callerPolicy":"snp","issuers":[{"audience":"app","issuer":"https://a.example","jwksOrigin":"https://keys.a.example"},{"audience":"app","issuer":"https://b.example","jwksOrigin":"https://b.example"}],"quoteSource":"configfs","rootSecret":"dstack","version":"1.0.0"}'
    expect(toHex(hashEnclaveConfig(config))).toBe(createHash('sha256').update(json).digest('hex'))
  })

  test('does not depend on the order of the members', () => {
    const reversed = Object.fromEntries(Object.entries(config).reverse()) as EnclaveConfig
    expect(toHex(hashEnclaveConfig(reversed))).toBe(toHex(hashEnclaveConfig(config)))
  })

  test('one issuer may serve several audiences', () => {
    expect(() => assertEnclaveConfig({ ...config, issuers: [one, { ...one, audience: 'other' }] })).not.toThrow()
  })

  const { version: _, ...withoutVersion } = config
  test.each([
    ['null', null],
    ['a list', [config]],
    ['a missing member', withoutVersion],
    ['a member too many', { ...config, extra: '' }],
    ['an inherited member', Object.assign(Object.create({ version: '1.0.0' }), withoutVersion)],
    ['a number for a string', { ...config, version: 1 }],
    ['an empty string', { ...config, caSet: '' }],
    ['no list of issuers', { ...config, issuers: { 0: one } }],
    ['no issuers', { ...config, issuers: [] }],
    ['an issuer without an origin', { ...config, issuers: [{ issuer: 'a', audience: 'b' }] }],
    ['an issuer with more', { ...config, issuers: [{ ...one, extra: '' }] }],
    ['an empty audience', { ...config, issuers: [{ ...one, audience: '' }] }],
    ['an audience list', { ...config, issuers: [{ ...one, audience: ['app'] }] }],
    ['issuers out of order', { ...config, issuers: [two, one] }],
    ['audiences out of order', { ...config, issuers: [one, { ...one, audience: 'aaa' }] }],
    ['an issuer twice', { ...config, issuers: [one, { ...one, jwksOrigin: 'https://z.example' }] }],
  ])('refuses %s', (_, value) => {
    expect(() => assertEnclaveConfig(value)).toThrow(withCode('enclave_config_malformed'))
    expect(() => hashEnclaveConfig(value as EnclaveConfig)).toThrow(withCode('enclave_config_malformed'))
  })

  test('rejects text that UTF-8 cannot encode', () => {
    expect(() => hashEnclaveConfig({ ...config, version: '\ud800' })).toThrow(withCode('not_canonicalizable'))
  })
})
