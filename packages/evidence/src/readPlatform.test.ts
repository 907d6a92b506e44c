import { createSimulator } from '@countersign/attestation/simulator'
import { expect, test } from 'vitest'
import { createPlatformReader, readPlatform } from './readPlatform.ts'

const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })
const reportData = new Uint8Array(64)

const platform = { fmspc: 'f0c06f000000', ca: 'platform' }

test('the platform is read from the PCK certificate of the quote', () => {
  expect(readPlatform(simulator.quote({ reportData }))).toEqual(platform)
})

test('what is no quote, or names no PCK certificate, is refused', () => {
  for (const quote of [new Uint8Array(100), simulator.quote({ reportData, faults: { chainSwapped: true } })]) {
    expect(() => readPlatform(quote)).toThrow(expect.objectContaining({ name: 'QuoteError' }))
  }
})

test('a reader of many quotes remembers the platform of a chain, and refuses another chain all the same', () => {
  const read = createPlatformReader()
  const first = read(simulator.quote({ reportData }))
  expect(first).toEqual(platform)
  expect(read(simulator.quote({ reportData: new Uint8Array(64).fill(1) }))).toBe(first)
  for (const quote of [new Uint8Array(100), simulator.quote({ reportData, faults: { chainSwapped: true } })]) {
    expect(() => read(quote)).toThrow(expect.objectContaining({ name: 'QuoteError' }))
  }
  expect(read(simulator.quote({ reportData }))).toBe(first)
})
