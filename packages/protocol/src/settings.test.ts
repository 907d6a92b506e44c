import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { assertEnclaveSettings, assertSettingsOf, createEnclaveSettings, toEnclaveVersion } from './settings.ts'

// RFC 8032 §7.1, tests 1 and 2.
const key = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const other = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'
// drand's quicknet, https://api.drand.sh/52db…e971/info.
const beacon = {
  kind: 'drand',
  key: '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a',
  chainHash: '52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971',
  genesisS: 1_692_803_367,
  periodS: 3,
} as const
const settings = createEnclaveSettings([{ kind: 'satellite', key }])
const log = { origins: ['log.example/a'], witnesses: [other, key], quorum: 2 }
const withLog = (changes: object) => createEnclaveSettings(settings.entropy, [], { ...log, ...changes })

describe('settings under the quote', () => {
  test('the version ends in SHA-256 of their canonical JSON', () => {
    const json = `{"entropy":[{"key":"${key}","kind":"satellite"}],"implementations":[],"log":null,"sessions":"any"}`
    const hash = createHash('sha256').update(json).digest('hex')
    expect(toEnclaveVersion('1.2.3', settings)).toBe(`1.2.3+${hash}`)
    expect(() => assertSettingsOf({ version: `1.2.3+${hash}` }, settings)).not.toThrow()
  })

  test('rejects the settings of another configuration', () => {
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

  test('sorts sources', () => {
    const sources = [
      beacon,
      { kind: 'unsigned' },
      { kind: 'satellite', key },
      { kind: 'satellite', key: other },
    ] as const
    expect(createEnclaveSettings(sources)).toEqual(createEnclaveSettings(sources.toReversed()))
    expect(() => assertEnclaveSettings(createEnclaveSettings(sources))).not.toThrow()
  })

  test('sorts implementations, and hashes them', () => {
    const [one, two] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as const
    const listed = createEnclaveSettings(settings.entropy, [two, one])
    expect(listed.implementations).toEqual([one, two])
    expect(() => assertEnclaveSettings(listed)).not.toThrow()
    expect(toEnclaveVersion('1.2.3', listed)).not.toBe(toEnclaveVersion('1.2.3', settings))
  })

  test('sorts origins and witnesses of a log, and hashes all of it', () => {
    const listed = createEnclaveSettings(settings.entropy, [], {
      origins: ['log.example/b', 'log.example/a'],
      witnesses: [key, other],
      quorum: 2,
    })
    expect(listed.log).toEqual({ origins: ['log.example/a', 'log.example/b'], witnesses: [other, key], quorum: 2 })
    expect(() => assertEnclaveSettings(listed)).not.toThrow()
    const one = createEnclaveSettings(settings.entropy, [], { ...log, witnesses: [key], quorum: 1 })
    const versions = [settings, listed, withLog({}), one].map((value) => toEnclaveVersion('1.2.3', value))
    expect(new Set(versions).size).toBe(4)
  })

  test.each<[string, object]>([
    ['without a member', without(log, 'quorum')],
    ['with a member too many', { ...log, extra: 1 }],
    ['without an origin', { ...log, origins: [] }],
    ['with 17 origins', { ...log, origins: Array.from({ length: 17 }, (_, index) => `log.example/${index + 10}`) }],
    ['with an empty origin', { ...log, origins: [''] }],
    ['with a space in an origin', { ...log, origins: ['log example'] }],
    ['with a plus in an origin', { ...log, origins: ['log+example'] }],
    ['with two lines in an origin', { ...log, origins: ['log.example\n5'] }],
    ['with a long origin', { ...log, origins: ['é'.repeat(128)] }],
    ['with half a character in an origin', { ...log, origins: ['log.example/\ud800'] }],
    ['with an origin twice', { ...log, origins: ['a', 'a'] }],
    ['with origins in another order', { ...log, origins: ['b', 'a'] }],
    ['with an origin that is not a string', { ...log, origins: [1] }],
    ['without a witness', { ...log, witnesses: [], quorum: 0 }],
    ['with a witness twice', { ...log, witnesses: [key, key] }],
    ['with witnesses in another order', { ...log, witnesses: [key, other] }],
    ['with a witness in upper case', { ...log, witnesses: [key.toUpperCase()], quorum: 1 }],
    ['with a witness of small order', { ...log, witnesses: ['00'.repeat(32)], quorum: 1 }],
    ['with half of the witnesses', { ...log, quorum: 1 }],
    ['with more than the witnesses', { ...log, quorum: 3 }],
    ['with one and a half', { ...log, quorum: 1.5 }],
    ['with a quorum in words', { ...log, quorum: '2' }],
  ])('a log %s is refused', (_, value) => {
    expect(() => assertEnclaveSettings({ ...settings, log: value })).toThrow(withCode('enclave_config_malformed'))
  })

  test.each<[string, unknown]>([
    ['null', null],
    ['a missing member', { entropy: settings.entropy, log: null }],
    ['a member too many', { ...settings, extra: 1 }],
    ['a log without members', { ...settings, log: {} }],
    ['no word about a log', { ...settings, log: undefined }],
    ['no list of implementations', { ...settings, implementations: {} }],
    ['an implementation in upper case', { ...settings, implementations: [`0x${'AA'.repeat(20)}`] }],
    ['an implementation without 0x', { ...settings, implementations: ['11'.repeat(20)] }],
    ['an implementation twice', { ...settings, implementations: [`0x${'11'.repeat(20)}`, `0x${'11'.repeat(20)}`] }],
    [
      'implementations in another order',
      { ...settings, implementations: [`0x${'22'.repeat(20)}`, `0x${'11'.repeat(20)}`] },
    ],
    ['no source', { ...settings, entropy: [] }],
    ['a source twice', { ...settings, entropy: [...settings.entropy, ...settings.entropy] }],
    ['sources in another order', { ...settings, entropy: [{ kind: 'unsigned' }, ...settings.entropy] }],
    ['an unknown source', { ...settings, entropy: [{ kind: 'dice' }] }],
    ['a key where none belongs', { ...settings, entropy: [{ kind: 'unsigned', key }] }],
    ['no key', { ...settings, entropy: [{ kind: 'satellite' }] }],
    ['a key in upper case', { ...settings, entropy: [{ kind: 'satellite', key: key.toUpperCase() }] }],
    ['a key of small order', { ...settings, entropy: [{ kind: 'satellite', key: '00'.repeat(32) }] }],
    ['a beacon without its genesis', { ...settings, entropy: [without(beacon, 'genesisS')] }],
    ['a beacon that is called a satellite', { ...settings, entropy: [{ ...beacon, kind: 'satellite' }] }],
    ['a beacon that never moves', { ...settings, entropy: [{ ...beacon, periodS: 0 }] }],
    ['a beacon with half a second', { ...settings, entropy: [{ ...beacon, genesisS: 0.5 }] }],
    ['a beacon with an Ed25519 key', { ...settings, entropy: [{ ...beacon, key }] }],
    ['a beacon whose key is not a point', { ...settings, entropy: [{ ...beacon, key: `83${'00'.repeat(95)}` }] }],
    ['a beacon whose key is infinity', { ...settings, entropy: [{ ...beacon, key: `c0${'00'.repeat(95)}` }] }],
    ['a beacon in upper case', { ...settings, entropy: [{ ...beacon, key: beacon.key.toUpperCase() }] }],
  ])('%s is refused', (_, value) => {
    expect(() => assertEnclaveSettings(value)).toThrow(withCode('enclave_config_malformed'))
  })
})

function without<Value extends object>(value: Value, name: keyof Value) {
  const { [name]: _, ...rest } = value
  return rest
}
