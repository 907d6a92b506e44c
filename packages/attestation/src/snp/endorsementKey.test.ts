import { fromHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import type { Certificate } from '../x509/parseCertificate.ts'
import {
  isProductName,
  isSameChip,
  isSameTcb,
  parseEndorsementExtensions,
  parseSnpTcb,
  toSnpProduct,
} from './endorsementKey.ts'

test('56860, section 2.2: reads TCB versions of Milan and Genoa', () => {
  expect(parseSnpTcb(fromHex('04000000000018d9'), 'Milan')).toEqual({ fmc: 0, bl: 4, tee: 0, snp: 24, ucode: 217 })
  expect(parseSnpTcb(fromHex('0a01000000000e54'), 'Genoa')).toEqual({ fmc: 0, bl: 10, tee: 1, snp: 14, ucode: 84 })
})

test('56860, section 2.2: reads TCB versions of Turin, with FMC at byte 0', () => {
  expect(parseSnpTcb(fromHex('0102030400000005'), 'Turin')).toEqual({ fmc: 1, bl: 2, tee: 3, snp: 4, ucode: 5 })
})

test.each([
  ['0400010000000000', 'Milan'],
  ['0400000000010000', 'Genoa'],
  ['0000000001000000', 'Turin'],
] as const)('rejects a reserved byte in %s (%s)', (hex, product) => {
  expect(() => parseSnpTcb(fromHex(hex), product)).toThrow(expect.objectContaining({ code: 'report_malformed' }))
})

test.each(['fmc', 'bl', 'tee', 'snp', 'ucode'] as const)('distinguishes TCBs that differ in %s', (part) => {
  const tcb = { fmc: 1, bl: 2, tee: 3, snp: 4, ucode: 5 }
  expect(isSameTcb(tcb, { ...tcb })).toBe(true)
  expect(isSameTcb(tcb, { ...tcb, [part]: 9 })).toBe(false)
})

test('matches the first 8 bytes of a Turin’s chip id if the rest is zero', () => {
  const chipId = new Uint8Array(64)
  chipId.set(fromHex('0102030405060708'))
  expect(isSameChip(fromHex('0102030405060708'), chipId)).toBe(true)
  expect(isSameChip(chipId, chipId)).toBe(true)
  expect(isSameChip(fromHex('01020304'), chipId)).toBe(false)
  chipId[63] = 1
  expect(isSameChip(fromHex('0102030405060708'), chipId)).toBe(false)
})

test.each([
  [0x19, 0x01, 'Milan'],
  [0x19, 0x11, 'Genoa'],
  [0x19, 0xa0, 'Genoa'],
  [0x1a, 0x02, 'Turin'],
  [0x17, 0x31, undefined],
])('CPUID family %d, model %d is %s', (family, model, product) => {
  expect(toSnpProduct({ family, model })).toBe(product)
})

test.each([
  ['Milan-B0', 'Milan', true],
  ['Milan', 'Milan', true],
  ['Genoa-B1', 'Genoa', true],
  ['Siena-B1', 'Genoa', true],
  ['Bergamo-A2', 'Genoa', true],
  ['Turin-C1', 'Turin', true],
  ['Milan-B0', 'Genoa', false],
  ['Siena-B1', 'Milan', false],
  ['MilanX-B0', 'Milan', false],
  ['', 'Milan', false],
] as const)('product %s under the root of %s: %s', (name, product, isFine) => {
  expect(isProductName(name, product)).toBe(isFine)
})

test('reads a chip id with and without a DER OCTET STRING', () => {
  const chipId = Uint8Array.from({ length: 64 }, (_, index) => index)
  const withHwId = (value: Uint8Array<ArrayBuffer>) => {
    const level = { critical: false, value: fromHex('020100') }
    const extensions = new Map(['3.1', '3.2', '3.3', '3.8'].map((oid) => [`1.3.6.1.4.1.3704.1.${oid}`, level]))
    extensions.set('1.3.6.1.4.1.3704.1.2', { critical: false, value: fromHex('16084d696c616e2d4230') })
    extensions.set('1.3.6.1.4.1.3704.1.4', { critical: false, value })
    return parseEndorsementExtensions({ extensions } as unknown as Certificate, 'Milan').hwId
  }
  expect(withHwId(chipId)).toEqual(chipId)
  expect(withHwId(Uint8Array.from([0x04, 0x40, ...chipId]))).toEqual(chipId)
  expect(() => withHwId(Uint8Array.from([0x04, 0x3f, ...chipId]))).toThrow(
    expect.objectContaining({ code: 'certificate_malformed' }),
  )
})
