import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import manifestSchema from '../../attestation/spec/manifest-v1.schema.json' with { type: 'json' }
import { issue, toManifest } from '../test/issues.ts'
import { withCode } from '../test/withCode.ts'
import { emptyManifest, parseManifest } from './parseManifest.ts'

const good = toManifest(await issue())
/** Keys of witnesses: RFC 8032 §7.1. */
const witnesses = [
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
]
const parse = (value: unknown) => parseManifest(JSON.stringify(value))
/** Evidence, version 1, section 11. */
const isInSchema = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(manifestSchema)
const accept = (value: object) => {
  expect(isInSchema(value)).toBe(true)
  expect(parse(value)).toEqual(value)
}

describe('a manifest', () => {
  test('is parsed unchanged', () => {
    accept(good)
    const events = { 'compose-hash': ['ab'.repeat(32)] }
    const full = { ...good, enclave: { ...good.enclave, events }, contracts: [] }
    accept(full)
    const withFloors = {
      ...good,
      enclave: { ...good.enclave, minimumTcbEvaluationDataNumber: 17 },
      coordinator: {
        ...good.coordinator,
        minimumTcb: { Milan: { bl: 4, tee: 0, snp: 24, ucode: 255 }, Genoa: {}, Turin: { fmc: 1 } },
      },
    }
    accept(withFloors)
    const witnessUrls = ['https://w1.example/witness', 'http://127.0.0.1:8095']
    const withLog = { ...good, log: { witnesses, quorum: 2 }, witnessUrls }
    accept(withLog)
  })

  test('the built-in one is valid, and empty until there is a release', () => {
    accept(emptyManifest)
    expect(emptyManifest.enclave.measurements).toEqual([])
  })

  const mrTd = 'ab'.repeat(48)
  const [contract] = good.contracts

  /** The valid manifest with another value in one place; undefined removes the member. */
  function change(path: string, value: unknown): unknown {
    const changed = structuredClone(good) as unknown as Record<string, never>
    const names = path.split('.')
    const last = names.pop() as string
    const parent = names.reduce((node, name) => node[name] as unknown as typeof changed, changed)
    Object.assign(parent, { [last]: value })
    return changed
  }

  test.each<[path: string, value: unknown, fault: string]>([
    ['version', undefined, 'version: missing'],
    ['version', 'countersign-manifest/2', 'version: not countersign-manifest/1'],
    ['mesurements', [], 'mesurements: unknown member'],
    ['constructor', 1, 'constructor: unknown member'],
    ['enclave', undefined, 'enclave: missing'],
    ['enclave', [], 'enclave: not an object'],
    ['enclave.platforms', [], 'enclave.platforms: an empty list'],
    ['enclave.platforms', ['00806f050000'], 'enclave.platforms[0]: not'],
    ['enclave.platforms', [{ ppid: '00806f050000' }], 'enclave.platforms[0]: not one of fmspc (6 bytes), ppid'],
    ['enclave.platforms', [{ fmspc: '00806f050000', ppid: 'ab'.repeat(16) }], 'enclave.platforms[0]: not one of'],
    ['enclave.measurements', [mrTd], 'enclave.measurements[0]'],
    ['enclave.measurements', [{}], 'enclave.measurements[0].mrTd: missing'],
    ['enclave.measurements', [{ mrTd, rtmr2: 'ab' }], 'enclave.measurements[0].rtmr2: not 48 bytes'],
    ['enclave.measurements', [{ mrTd, RTMR2: mrTd }], 'enclave.measurements[0].RTMR2: unknown member'],
    ['enclave.configHashes', ['AB'.repeat(32)], 'enclave.configHashes[0]: not 32 bytes of lower-case hex'],
    ['enclave.events', [], 'enclave.events: not an object'],
    ['enclave.events', { a: [] }, 'enclave.events.a: an empty list'],
    ['enclave.events', { a: 'ab' }, 'enclave.events.a: not a list'],
    ['enclave.events', { a: ['x'] }, 'enclave.events.a[0]: not lower-case hex'],
    ['enclave.minimumTcb', { Milan: {} }, 'enclave.minimumTcb: unknown member'],
    ...[-1, 1.5, '17', null, 2 ** 53].map((number): [string, unknown, string] => {
      const path = 'enclave.minimumTcbEvaluationDataNumber'
      return [path, number, `${path}: not a natural number`]
    }),
    ['coordinator.measurements', ['ab'.repeat(32)], 'coordinator.measurements[0]: not 48 bytes'],
    ['coordinator.measurements', [`${mrTd}:${mrTd}`], 'coordinator.measurements[0]: not 48 bytes'],
    ['coordinator.measurements', [{ measurement: mrTd }], 'coordinator.measurements[0]: not 48 bytes'],
    ['coordinator.chips', ['ab'.repeat(8)], 'coordinator.chips[0]: not 64 bytes'],
    ['coordinator.chips', [], 'coordinator.chips: an empty list'],
    ...[-1, 256, 0.5, '4', null, []].map((level): [string, unknown, string] => [
      ...(['coordinator.minimumTcb', { Milan: { bl: level } }] as const),
      'coordinator.minimumTcb.Milan.bl: not a number from 0 to 255',
    ]),
    ['coordinator.minimumTcb', { Milan: { microcode: 1 } }, 'coordinator.minimumTcb.Milan.microcode: unknown member'],
    ['coordinator.minimumTcb', { milan: { bl: 1 } }, 'coordinator.minimumTcb.milan: unknown member'],
    ['coordinator.minimumTcb', { Turin: 4 }, 'coordinator.minimumTcb.Turin: not an object'],
    ['coordinator.minimumTcb', [], 'coordinator.minimumTcb: not an object'],
    ['coordinator.minimumTcb', {}, 'coordinator.minimumTcb: names no product'],
    ...[-1, 0.5, '60', null, 2 ** 53].map((delay): [string, unknown, string] => [
      ...(['maximumEventDelayS', delay] as const),
      'maximumEventDelayS: ',
    ]),
    // Only a reader can allow more.
    ['maximumEventDelayS', 259_201, 'maximumEventDelayS: longer than 72 hours'],
    ...[
      ...['ftp://w1.example', 'w1.example', 'https://me:secret@w1.example'],
      ...['https://w1.example?a', 'https://w1.example#a', 1],
    ].map((url): [string, unknown, string] => ['witnessUrls', [url], 'witnessUrls[0]: not an https URL']),
    ['witnessUrls', Array.from({ length: 33 }, (_, at) => `https://w${at}.example`), 'witnessUrls: more than 32'],
    ['log', { witnesses }, 'log.quorum: missing'],
    ['log', { quorum: 1 }, 'log.witnesses: missing'],
    ['log', { witnesses: [], quorum: 0 }, 'log: not 1 to 32 Ed25519 keys'],
    ['log', { witnesses, quorum: 0 }, 'log: not 1 to 32 Ed25519 keys'],
    ['log', { witnesses: [witnesses[0], witnesses[0]], quorum: 2 }, 'each once'],
    ['log', { witnesses: ['w1.example'], quorum: 1 }, 'log.witnesses[0]: not 32 bytes'],
    ['log', { witnesses, quorum: 2, origins: [] }, 'log.origins: unknown member'],
    ['entropyKeys', 'ab'.repeat(32), 'entropyKeys: not a list'],
    ['contracts', [{ chainId: 1 }], 'contracts[0].address: missing'],
    ['contracts', [{ chainId: 1, address: '0xab' }], 'contracts[0].address: not 0x'],
    ['contracts', [{ ...contract, chainId: '1' }], 'contracts[0].chainId: not a natural'],
    ['contracts', [{ ...contract, chainId: 0 }], 'contracts[0].chainId: not the number of a chain'],
    ['contracts', [{ ...contract, from: 1 }], 'contracts[0].from: unknown'],
    ['contracts', [{ ...contract, fromBlock: -1 }], 'contracts[0].fromBlock'],
  ])('is rejected by code and schema when %s is %j', (path, value, fault) => {
    const changed = change(path, value)
    expect(() => parse(changed)).toThrow(withCode('manifest_malformed', fault))
    expect(isInSchema(JSON.parse(JSON.stringify(changed)))).toBe(false)
  })

  test.each<[path: string, value: unknown, fault: string]>([
    ['log', { witnesses, quorum: 1 }, 'a quorum of more than half'],
    ['log', { witnesses, quorum: 3 }, 'a quorum of more than half'],
    // A key of small order.
    ['log', { witnesses: ['00'.repeat(32)], quorum: 1 }, 'log: not 1 to 32'],
    ['witnessUrls', ['http://w1.example'], 'witnessUrls[0]: not an https URL'],
    ['contracts', [contract, contract], 'contracts: two contracts on one chain'],
  ])('is rejected by code, beyond the schema, when %s is %j', (path, value, fault) => {
    const changed = change(path, value)
    expect(() => parse(changed)).toThrow(withCode('manifest_malformed', fault))
    expect(isInSchema(changed)).toBe(true)
  })

  test.each<[unknown, string]>([
    [[], 'manifest: not an object'],
    [null, 'manifest: not an object'],
    ['all', 'manifest: not an object'],
    [JSON.parse('{"__proto__":1}'), '__proto__: unknown member'],
  ])('rejects %j', (value, fault) => {
    expect(() => parse(value)).toThrow(withCode('manifest_malformed', fault))
  })

  test('reports every fault at once', () => {
    const faulty = { ...good, version: 1, entropyKeys: ['x', 'y'], extra: 0 }
    const faults = [
      'version: not countersign-manifest/1',
      'entropyKeys[0]: not 32 or 96 bytes of lower-case hex',
      'entropyKeys[1]: not 32 or 96 bytes of lower-case hex',
      'extra: unknown member',
    ]
    expect(() => parse(faulty)).toThrow(expect.objectContaining({ details: faults.join('; ') }))
  })

  test('rejects text that is not JSON', () => {
    expect(() => parseManifest('{')).toThrow(withCode('manifest_malformed', 'not JSON'))
    const twice = JSON.stringify(emptyManifest).replace('"entropyKeys":[]', '"entropyKeys":[],"entropyKeys":[]')
    expect(() => parseManifest(twice)).toThrow(withCode('manifest_malformed', 'has a member twice'))
  })
})

test.each(['5', '["ab"]', '{}'])('rejects an event named __proto__ with any value: %s', (payloads) => {
  const json = JSON.stringify({ ...emptyManifest, enclave: { ...emptyManifest.enclave, events: { place: 0 } } })
  const parse = () => parseManifest(json.replace('"place":0', `"__proto__":${payloads}`))
  expect(parse).toThrow(withCode('manifest_malformed', 'enclave.events.__proto__: not a name of an event'))
})
