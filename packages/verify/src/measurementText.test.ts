import { expect, test } from 'vitest'
import { parseMeasurementText, toMeasurementText } from './measurementText.ts'
import { withCode } from './withCode.fake.ts'

const hex = (digit: string) => digit.repeat(96)
const [mrTd, rtmr0, rtmr1, rtmr2, rtmr3] = ['a', 'b', 'c', 'd', 'e'].map(hex) as [
  string,
  string,
  string,
  string,
  string,
]

test.each([{ mrTd }, { mrTd, rtmr0, rtmr1, rtmr2 }, { mrTd, rtmr0, rtmr1, rtmr2, rtmr3 }])(
  'the text of a measurement is read back as the same one',
  (measurement) => {
    expect(parseMeasurementText(toMeasurementText(measurement), (part) => part)).toEqual(measurement)
  },
)

test.each<[string, object]>([
  ['a register left out in between', { rtmr1, rtmr2, rtmr3 }],
  ['two registers', { rtmr0 }],
  ['a register that the text has no place for', { rtmr0, rtmr1, rtmr2, mrConfigId: hex('f') }],
])('%s is refused', (_name, registers) => {
  expect(() => toMeasurementText({ mrTd, ...registers })).toThrow(withCode('invalid_arguments'))
})
