import { describe, expect, test } from 'vitest'
import { issue, toManifest } from './issues.fake.ts'
import { emptyManifest, parseManifest } from './parseManifest.ts'
import { withCode } from './withCode.fake.ts'

const good = toManifest(await issue())
/** Keys of witnesses: RFC 8032 §7.1. */
const witnesses = [
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
]
const parse = (value: unknown) => parseManifest(JSON.stringify(value))

describe('a manifest', () => {
  test('is read as it stands', () => {
    expect(parse(good)).toEqual(good)
    const events = { 'compose-hash': ['ab'.repeat(32)] }
    const full = { ...good, enclave: { ...good.enclave, events }, contracts: [] }
    expect(parse(full)).toEqual(full)
    const withFloors = {
      ...good,
      enclave: { ...good.enclave, minimumTcbEvaluationDataNumber: 17 },
      coordinator: {
        ...good.coordinator,
        minimumTcb: { Milan: { bl: 4, tee: 0, snp: 24, ucode: 255 }, Genoa: {}, Turin: { fmc: 1 } },
      },
    }
    expect(parse(withFloors)).toEqual(withFloors)
    const witnessUrls = ['https://w1.example/witness', 'http://127.0.0.1:8095']
    const withLog = { ...good, log: { witnesses, quorum: 2 }, witnessUrls }
    expect(parse(withLog)).toEqual(withLog)
  })

  test('the built-in one is well-formed, and empty until there is a release', () => {
    expect(parse(emptyManifest)).toEqual(emptyManifest)
    expect(emptyManifest.enclave.measurements).toEqual([])
  })

  const { enclave, coordinator } = good
  const mrTd = 'ab'.repeat(48)
  const [contract] = good.contracts
  test.each<[string, unknown, string]>([
    ['a list', [], 'manifest: not an object'],
    ['null', null, 'manifest: not an object'],
    ['no version', { ...good, version: undefined }, 'version: missing'],
    ['another version', { ...good, version: 'countersign-manifest/2' }, 'version: not countersign-manifest/1'],
    ['an unknown member', { ...good, mesurements: [] }, 'mesurements: unknown member'],
    ['a member of Object.prototype', { ...good, constructor: 1 }, 'constructor: unknown member'],
    ['no enclave', { ...good, enclave: undefined }, 'enclave: missing'],
    ['an enclave that is a list', { ...good, enclave: [] }, 'enclave: not an object'],
    ['no platform', { ...good, enclave: { ...enclave, platforms: [] } }, 'enclave.platforms: an empty list'],
    [
      'a platform as text',
      { ...good, enclave: { ...enclave, platforms: ['00806f050000'] } },
      'enclave.platforms[0]: not',
    ],
    [
      'a PPID of six bytes',
      { ...good, enclave: { ...enclave, platforms: [{ ppid: '00806f050000' }] } },
      'enclave.platforms[0]: not one of fmspc (6 bytes), ppid',
    ],
    [
      'a platform with two identities',
      { ...good, enclave: { ...enclave, platforms: [{ fmspc: '00806f050000', ppid: 'ab'.repeat(16) }] } },
      'enclave.platforms[0]: not one of',
    ],
    ['a measurement as text', { ...good, enclave: { ...enclave, measurements: [mrTd] } }, 'enclave.measurements[0]'],
    ['no MRTD', { ...good, enclave: { ...enclave, measurements: [{}] } }, 'enclave.measurements[0].mrTd: missing'],
    [
      'a short register',
      { ...good, enclave: { ...enclave, measurements: [{ mrTd, rtmr2: 'ab' }] } },
      'enclave.measurements[0].rtmr2: not 48 bytes',
    ],
    [
      'a misspelt register',
      { ...good, enclave: { ...enclave, measurements: [{ mrTd, RTMR2: mrTd }] } },
      'enclave.measurements[0].RTMR2: unknown member',
    ],
    [
      'upper case',
      { ...good, enclave: { ...enclave, configHashes: ['AB'.repeat(32)] } },
      'enclave.configHashes[0]: not 32 bytes of lower-case hex',
    ],
    ['events in a list', { ...good, enclave: { ...enclave, events: [] } }, 'enclave.events: not an object'],
    ['an event of nothing', { ...good, enclave: { ...enclave, events: { a: [] } } }, 'enclave.events.a: an empty list'],
    ['an event of text', { ...good, enclave: { ...enclave, events: { a: 'ab' } } }, 'enclave.events.a: not a list'],
    [
      'an event that is no hex',
      { ...good, enclave: { ...enclave, events: { a: ['x'] } } },
      'enclave.events.a[0]: not lower-case hex',
    ],
    [
      'a coordinator measurement of 32 bytes',
      { ...good, coordinator: { ...coordinator, measurements: ['ab'.repeat(32)] } },
      'coordinator.measurements[0]: not 48 bytes',
    ],
    [
      'HOST_DATA of 48 bytes',
      { ...good, coordinator: { ...coordinator, measurements: [`${'ab'.repeat(48)}:${'ab'.repeat(48)}`] } },
      'coordinator.measurements[0]: not 48 bytes',
    ],
    [
      'a coordinator measurement as an object',
      { ...good, coordinator: { ...coordinator, measurements: [{ measurement: 'ab'.repeat(48) }] } },
      'coordinator.measurements[0]: not 48 bytes',
    ],
    [
      'a chip by its first 8 bytes',
      { ...good, coordinator: { ...coordinator, chips: ['ab'.repeat(8)] } },
      'coordinator.chips[0]: not 64 bytes',
    ],
    ['no chips', { ...good, coordinator: { ...coordinator, chips: [] } }, 'coordinator.chips: an empty list'],
    ...[-1, 1.5, '17', null, 2 ** 53].map((number): [string, unknown, string] => [
      `the evaluation data number ${JSON.stringify(number)}`,
      { ...good, enclave: { ...enclave, minimumTcbEvaluationDataNumber: number } },
      'enclave.minimumTcbEvaluationDataNumber: not a natural number',
    ]),
    ...[-1, 0.5, '60', null, 2 ** 53].map((delay): [string, unknown, string] => [
      `the delay ${JSON.stringify(delay)} of an event`,
      { ...good, maximumEventDelayS: delay },
      'maximumEventDelayS: ',
    ]),
    [
      'a delay of an event beyond 72 hours, which only a reader can grant',
      { ...good, maximumEventDelayS: 259_201 },
      'maximumEventDelayS: longer than 72 hours',
    ],
    ...[-1, 256, 0.5, '4', null, []].map((level): [string, unknown, string] => [
      `the patch level ${JSON.stringify(level)}`,
      { ...good, coordinator: { ...coordinator, minimumTcb: { Milan: { bl: level } } } },
      'coordinator.minimumTcb.Milan.bl: not a number from 0 to 255',
    ]),
    [
      'a part that is none',
      { ...good, coordinator: { ...coordinator, minimumTcb: { Milan: { microcode: 1 } } } },
      'coordinator.minimumTcb.Milan.microcode: unknown member',
    ],
    [
      'a product that is none',
      { ...good, coordinator: { ...coordinator, minimumTcb: { milan: { bl: 1 } } } },
      'coordinator.minimumTcb.milan: unknown member',
    ],
    [
      'a product as a number',
      { ...good, coordinator: { ...coordinator, minimumTcb: { Turin: 4 } } },
      'coordinator.minimumTcb.Turin: not an object',
    ],
    [
      'patch levels in a list',
      { ...good, coordinator: { ...coordinator, minimumTcb: [] } },
      'coordinator.minimumTcb: not an object',
    ],
    [
      'patch levels of no product',
      { ...good, coordinator: { ...coordinator, minimumTcb: {} } },
      'coordinator.minimumTcb: names no product',
    ],
    [
      'a floor in the wrong place',
      { ...good, enclave: { ...enclave, minimumTcb: { Milan: {} } } },
      'enclave.minimumTcb: unknown member',
    ],
    ...[
      ...[
        'http://w1.example',
        'ftp://w1.example',
        'w1.example',
        'https://me:secret@w1.example',
        'https://w1.example?a',
      ],
      ...['https://w1.example#a', 1],
    ].map((url): [string, unknown, string] => [
      `${url} as the address of a witness`,
      { ...good, witnessUrls: [url] },
      'witnessUrls[0]: not an https URL',
    ]),
    [
      'the addresses of 33 witnesses',
      { ...good, witnessUrls: Array.from({ length: 33 }, (_, at) => `https://w${at}.example`) },
      'witnessUrls: more than 32',
    ],
    ['witnesses without a quorum', { ...good, log: { witnesses } }, 'log.quorum: missing'],
    ['a quorum without witnesses', { ...good, log: { quorum: 1 } }, 'log.witnesses: missing'],
    ['no witness', { ...good, log: { witnesses: [], quorum: 0 } }, 'log: not 1 to 32 Ed25519 keys'],
    ['no quorum', { ...good, log: { witnesses, quorum: 0 } }, 'log: not 1 to 32 Ed25519 keys'],
    ['half of the witnesses', { ...good, log: { witnesses, quorum: 1 } }, 'a quorum of more than half'],
    ['more than all', { ...good, log: { witnesses, quorum: 3 } }, 'a quorum of more than half'],
    ['a witness twice', { ...good, log: { witnesses: [witnesses[0], witnesses[0]], quorum: 2 } }, 'each once'],
    ['a key of small order', { ...good, log: { witnesses: ['00'.repeat(32)], quorum: 1 } }, 'log: not 1 to 32'],
    [
      'a name of a witness',
      { ...good, log: { witnesses: ['w1.example'], quorum: 1 } },
      'log.witnesses[0]: not 32 bytes',
    ],
    ['the origins of a log', { ...good, log: { witnesses, quorum: 2, origins: [] } }, 'log.origins: unknown member'],
    ['a key as text', { ...good, entropyKeys: 'ab'.repeat(32) }, 'entropyKeys: not a list'],
    ['a contract without an address', { ...good, contracts: [{ chainId: 1 }] }, 'contracts[0].address: missing'],
    ['a short address', { ...good, contracts: [{ chainId: 1, address: '0xab' }] }, 'contracts[0].address: not 0x'],
    ['a chain as text', { ...good, contracts: [{ ...contract, chainId: '1' }] }, 'contracts[0].chainId: not a natural'],
    [
      'a chain 0',
      { ...good, contracts: [{ ...contract, chainId: 0 }] },
      'contracts[0].chainId: not the number of a chain',
    ],
    ['a member named __proto__', JSON.parse('{"__proto__":1}'), '__proto__: unknown member'],
    ['a text', 'all', 'manifest: not an object'],
    [
      'a misspelt member of a contract',
      { ...good, contracts: [{ ...contract, from: 1 }] },
      'contracts[0].from: unknown',
    ],
    ['a block below zero', { ...good, contracts: [{ ...contract, fromBlock: -1 }] }, 'contracts[0].fromBlock'],
    [
      'two contracts on one chain',
      { ...good, contracts: [contract, contract] },
      'contracts: two contracts on one chain',
    ],
  ])('with %s is refused', (_, value, fault) => {
    expect(() => parse(value)).toThrow(withCode('manifest_malformed', fault))
  })

  test('every fault is named at once', () => {
    const faulty = { ...good, version: 1, entropyKeys: ['x', 'y'], extra: 0 }
    const faults = [
      'version: not countersign-manifest/1',
      'entropyKeys[0]: not 32 or 96 bytes of lower-case hex',
      'entropyKeys[1]: not 32 or 96 bytes of lower-case hex',
      'extra: unknown member',
    ]
    expect(() => parse(faulty)).toThrow(expect.objectContaining({ details: faults.join('; ') }))
  })

  test('that is no JSON is refused', () => {
    expect(() => parseManifest('{')).toThrow(withCode('manifest_malformed', 'not JSON'))
    const twice = JSON.stringify(emptyManifest).replace('"entropyKeys":[]', '"entropyKeys":[],"entropyKeys":[]')
    expect(() => parseManifest(twice)).toThrow(withCode('manifest_malformed', 'has a member twice'))
  })
})

test.each(['5', '["ab"]', '{}'])('an event named __proto__ is a fault, whatever it has: %s', (payloads) => {
  const json = JSON.stringify({ ...emptyManifest, enclave: { ...emptyManifest.enclave, events: { place: 0 } } })
  const parse = () => parseManifest(json.replace('"place":0', `"__proto__":${payloads}`))
  expect(parse).toThrow(withCode('manifest_malformed', 'enclave.events.__proto__: not a name of an event'))
})
