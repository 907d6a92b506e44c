import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { assertEnclaveSettings, assertSettingsOf, createEnclaveSettings, toEnclaveVersion } from './settings.ts'

// RFC 8032 §7.1, tests 1 and 2.
const key = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const other = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'
const settings = createEnclaveSettings([{ kind: 'satellite', key }])

describe('settings under the quote', () => {
  test('the version names them by SHA-256 of their canonical JSON', () => {
    const json = `{"entropy":[{"key":"${key}","kind":"satellite"}],"implementations":[],"log":null}`
    const hash = createHash('sha256').update(json).digest('hex')
    expect(toEnclaveVersion('1.2.3', settings)).toBe(`1.2.3+${hash}`)
    expect(() => assertSettingsOf({ version: `1.2.3+${hash}` }, settings)).not.toThrow()
  })

  test('those of another configuration are refused', () => {
    const others = createEnclaveSettings([{ kind: 'satellite', key: other }])
    for (const version of [
      toEnclaveVersion('1.2.3', others),
      '1.2.3',
      '',
      `${toEnclaveVersion('1.2.3', settings)}+x`,
    ]) {
      expect(() => assertSettingsOf({ version }, settings)).toThrow(withCode('enclave_config_malformed'))
    }
  })

  test('sources come in one order', () => {
    const sources = [{ kind: 'unsigned' }, { kind: 'satellite', key }, { kind: 'satellite', key: other }] as const
    expect(createEnclaveSettings(sources)).toEqual(createEnclaveSettings(sources.toReversed()))
    expect(() => assertEnclaveSettings(createEnclaveSettings(sources))).not.toThrow()
  })

  test.each<[string, unknown]>([
    ['null', null],
    ['a missing member', { entropy: settings.entropy, log: null }],
    ['a member too many', { ...settings, extra: 1 }],
    ['a log', { ...settings, log: {} }],
    ['an implementation', { ...settings, implementations: [`0x${'11'.repeat(20)}`] }],
    ['no source', { ...settings, entropy: [] }],
    ['a source twice', { ...settings, entropy: [...settings.entropy, ...settings.entropy] }],
    ['sources in another order', { ...settings, entropy: [{ kind: 'unsigned' }, ...settings.entropy] }],
    ['an unknown source', { ...settings, entropy: [{ kind: 'dice' }] }],
    ['a key where none belongs', { ...settings, entropy: [{ kind: 'unsigned', key }] }],
    ['no key', { ...settings, entropy: [{ kind: 'satellite' }] }],
    ['a key in upper case', { ...settings, entropy: [{ kind: 'satellite', key: key.toUpperCase() }] }],
    ['a key of small order', { ...settings, entropy: [{ kind: 'satellite', key: '00'.repeat(32) }] }],
  ])('%s is refused', (_, value) => {
    expect(() => assertEnclaveSettings(value)).toThrow(withCode('enclave_config_malformed'))
  })
})
