import { codeRegisters, type TdMeasurement, type TdPlatform } from '@countersign/attestation'
import { createNoteKey, toVkey } from '@countersign/log'
import { fromHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import {
  parseLogContractText,
  parseMeasurementText,
  parseMinimumTcbTexts,
  parsePlatformText,
  parseWitnessText,
  toLogContractTexts,
  toMeasurementText,
  toMinimumTcbTexts,
  toPlatformText,
} from './anchorTexts.ts'

const whole = Object.fromEntries(
  codeRegisters.map((name, index) => [name, `${index + 1}`.repeat(96)]),
) as Required<TdMeasurement>
const { mrTd, rtmr0, rtmr1, rtmr2, rtmr3, mrConfigId, mrOwner, mrOwnerConfig } = whole
const zero = '0'.repeat(96)
const keep = (part: string) => part

test.each<[string, TdMeasurement, number]>([
  ['MRTD', { mrTd }, 1],
  ['firmware and system', { mrTd, rtmr0, rtmr1, rtmr2 }, 4],
  ['MRTD and the RTMRs', { mrTd, rtmr0, rtmr1, rtmr2, rtmr3 }, 5],
  ['all', whole, 8],
  ['all but RTMR3, for which events stand', { mrTd, rtmr0, rtmr1, rtmr2, mrConfigId, mrOwner, mrOwnerConfig }, 8],
  ['two', { mrTd, rtmr0 }, 8],
  ['a gap', { mrTd, rtmr1, rtmr2, rtmr3 }, 8],
  ['one of those set at launch', { mrTd, rtmr0, rtmr1, rtmr2, rtmr3, mrConfigId }, 8],
  ['the last', { mrTd, mrOwnerConfig }, 8],
  ['zeros', { ...whole, rtmr3: zero, mrConfigId: zero, mrOwner: zero, mrOwnerConfig: zero }, 8],
])('the text of a measurement is read back as the same one: %s', (_name, measurement, parts) => {
  const text = toMeasurementText(measurement)
  expect(text.split(':')).toHaveLength(parts)
  expect(parseMeasurementText(text, keep)).toEqual(measurement)
})

test('writes a register of zeros as 0, and an unchecked one as nothing', () => {
  expect(toMeasurementText({ mrTd, rtmr3: zero, mrOwner: zero })).toBe(`${mrTd}::::0::0:`)
})

test.each([0, 2, 3, 6, 7, 9])('rejects a measurement of %i parts', (count) => {
  const text = count === 0 ? '' : Array(count).fill(mrTd).join(':')
  expect(parseMeasurementText(text, (part) => (part === '' ? 'checked' : part))).toEqual(
    count === 0 ? { mrTd: 'checked' } : undefined,
  )
})

test('only the full form may have empty registers, and never MRTD', () => {
  const checked: string[] = []
  const check = (part: string) => {
    checked.push(part)
    return part
  }
  parseMeasurementText(`${mrTd}:${rtmr0}::${rtmr2}`, check)
  expect(checked).toContain('')
  checked.length = 0
  parseMeasurementText(`:${rtmr0}::::::`, check)
  expect(checked).toEqual(['', rtmr0])
})

const minimumTcb = { Milan: { bl: 4, snp: 24, ucode: 219 }, Turin: { fmc: 1, tee: 0 } }

test('reads patch levels as written', () => {
  const texts = toMinimumTcbTexts(minimumTcb)
  expect(texts).toEqual(['Milan:bl=4,snp=24,ucode=219', 'Turin:fmc=1,tee=0'])
  expect(parseMinimumTcbTexts(texts)).toEqual(minimumTcb)
})

test('omits a product without levels, which would require nothing', () => {
  expect(toMinimumTcbTexts({ Milan: {}, Genoa: { bl: 1 } })).toEqual(['Genoa:bl=1'])
})

test.each([
  ['no levels', ['Milan']],
  ['empty levels', ['Milan:']],
  ['another product', ['Naples:bl=1']],
  ['lower case', ['milan:bl=1']],
  ['another part', ['Milan:microcode=1']],
  ['a name of every object', ['Milan:toString=1']],
  ['a product of every object', ['constructor:bl=1']],
  ['a level of more than a byte', ['Milan:bl=256']],
  ['a negative level', ['Milan:bl=-1']],
  ['a level in hex', ['Milan:bl=0x4']],
  ['a leading zero', ['Milan:bl=04']],
  ['no level', ['Milan:bl=']],
  ['a part twice', ['Milan:bl=1,bl=2']],
  ['a product twice', ['Milan:bl=1', 'Milan:snp=2']],
  ['a space', ['Milan:bl=1, snp=2']],
  ['two colons', ['Milan:bl=1:snp=2']],
])('is not read: %s', (_, texts) => {
  expect(parseMinimumTcbTexts(texts)).toBeUndefined()
})

const id = 'ab'.repeat(16)

test.each<[TdPlatform, string]>([
  [{ fmspc: '00806f050000' }, 'fmspc:00806f050000'],
  [{ ppid: id }, `ppid:${id}`],
  [{ platformInstanceId: id }, `platformInstanceId:${id}`],
])('a machine is written with what names it, and read back as the same', (platform, text) => {
  expect(toPlatformText(platform)).toBe(text)
  expect(parsePlatformText(text)).toEqual(platform)
})

test('accepts hex in either case and with 0x', () => {
  expect(parsePlatformText(`ppid:0x${id.toUpperCase()}`)).toEqual({ ppid: id })
})

test.each([
  '',
  id,
  'ppid',
  'ppid:',
  `PPID:${id}`,
  `ppid:${id}:`,
  `ppid:${id}00`,
  `fmspc:${id}`,
  'ppid:00806f050000',
  'fmspc:00806g050000',
  `__proto__:${id}`,
  `constructor:${id}`,
  `ppid=${id}`,
])('%s is no machine', (text) => {
  expect(parsePlatformText(text)).toBeUndefined()
})

/** RFC 8032 §7.1. */
const hex = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const name = 'witness.example/w1'
const vkey = toVkey(createNoteKey({ name, type: 'cosignature-ed25519', publicKey: fromHex(hex) }))

test('reads a key as its witness publishes it, and in hex of either case', () => {
  for (const text of [vkey, hex, hex.toUpperCase(), `0x${hex}`]) expect(parseWitnessText(text)).toBe(hex)
})

test.each([
  ['nothing', ''],
  ['a name', name],
  ['hex of another length', hex.slice(2)],
  ['the key of a log', toVkey(createNoteKey({ name, type: 'ed25519', publicKey: fromHex(hex) }))],
  [
    'a quantum-safe key, which policies do not name',
    toVkey(createNoteKey({ name, type: 'cosignature-ml-dsa-44', publicKey: new Uint8Array(1_312) })),
  ],
  ['an id of another key', vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+')],
  ['a key cut short', vkey.slice(0, -4)],
  ['only plus signs', '++'],
])('%s is none', (_, text) => {
  expect(parseWitnessText(text)).toBeUndefined()
})

const contract = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const checksummed = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const logId = `0x${'ab'.repeat(32)}`

test.each([
  [{ id: logId }, `${contract}:${logId}`],
  [{ id: logId, upTo: 90_000 }, `${contract}:${logId}:90000`],
])('reads a log on the chain and writes it back: %j', (log, text) => {
  const listed = { address: contract, logs: [log] }
  expect(parseLogContractText(text)).toEqual(listed)
  expect(parseLogContractText(text.replaceAll('0x', '').toUpperCase())).toEqual(listed)
  expect(parseLogContractText(text.replace(contract, checksummed))).toEqual(listed)
  expect(toLogContractTexts([listed])).toEqual([text])
})

test.each([
  ['nothing', ''],
  ['a contract without an id', contract],
  ['an empty id', `${contract}:`],
  ['an id without a contract', `:${logId}`],
  ['a short contract', `${contract.slice(0, -2)}:${logId}`],
  ['a wrong checksum', `${checksummed.replace('C8', 'c8')}:${logId}`],
  ['a long id', `${contract}:${logId}00`],
  ['an id that is not hex', `${contract}:0x${'xy'.repeat(32)}`],
  ['id and contract swapped', `${logId}:${contract}`],
  ['an empty size', `${contract}:${logId}:`],
  ['a size of zero', `${contract}:${logId}:0`],
  ['a negative size', `${contract}:${logId}:-1`],
  ['a size in hex', `${contract}:${logId}:0x10`],
  ['a size with separators', `${contract}:${logId}:90,000`],
  ['a size above 2^53', `${contract}:${logId}:9007199254740993`],
  ['two sizes', `${contract}:${logId}:1:2`],
  ['two logs on one line', `${contract}:${logId} ${contract}:${logId}`],
])('rejects a log on the chain with %s', (_, text) => {
  expect(parseLogContractText(text)).toBeUndefined()
})
