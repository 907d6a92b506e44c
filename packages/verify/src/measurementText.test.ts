import { codeRegisters, type TdMeasurement } from '@countersign/attestation'
import { expect, test } from 'vitest'
import { parseMeasurementText, toMeasurementText } from './measurementText.ts'

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

test('a register of zeros is written as 0, one that is left open as nothing', () => {
  expect(toMeasurementText({ mrTd, rtmr3: zero, mrOwner: zero })).toBe(`${mrTd}::::0::0:`)
})

test.each([0, 2, 3, 6, 7, 9])('%i parts are no measurement', (count) => {
  const text = count === 0 ? '' : Array(count).fill(mrTd).join(':')
  expect(parseMeasurementText(text, (part) => (part === '' ? 'judged' : part))).toEqual(
    count === 0 ? { mrTd: 'judged' } : undefined,
  )
})

test('only a text with a place for every register may leave one empty, and never MRTD', () => {
  const judged: string[] = []
  const judge = (part: string) => {
    judged.push(part)
    return part
  }
  parseMeasurementText(`${mrTd}:${rtmr0}::${rtmr2}`, judge)
  expect(judged).toContain('')
  judged.length = 0
  parseMeasurementText(`:${rtmr0}::::::`, judge)
  expect(judged).toEqual(['', rtmr0])
})
