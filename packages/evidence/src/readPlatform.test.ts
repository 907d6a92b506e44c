import { createSimulator } from '@countersign/attestation/simulator'
import { expect, test } from 'vitest'
import { readPlatform } from './readPlatform.ts'

const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })
const reportData = new Uint8Array(64)

test('the platform is read from the PCK certificate of the quote', () => {
  expect(readPlatform(simulator.quote({ reportData }))).toEqual({ fmspc: 'f0c06f000000', ca: 'platform' })
})

test('what is no quote, or names no PCK certificate, is refused', () => {
  for (const quote of [new Uint8Array(100), simulator.quote({ reportData, faults: { chainSwapped: true } })]) {
    expect(() => readPlatform(quote)).toThrow(expect.objectContaining({ name: 'QuoteError' }))
  }
})
