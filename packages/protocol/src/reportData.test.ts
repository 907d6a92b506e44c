import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import {
  computeEnclaveAttestReportData,
  computeSnpReportData,
  computeSnpReportDataV2,
  computeTdxReportData,
  firstPreviousBatchHash,
  hashBatch,
} from './reportData.ts'

const fill = (value: number, length: number) => new Uint8Array(length).fill(value)
const sha512 = (preimage: string) => createHash('sha512').update(Buffer.from(preimage, 'hex')).digest('hex')
const ascii = (text: string) => Buffer.from(text).toString('hex')

const tdx = {
  treeSize: 0x01020304,
  root: fill(0x11, 32),
  bootId: fill(0x22, 16),
  batchSequence: 0x0102030405,
  previousBatchHash: fill(0x33, 32),
  configHash: fill(0x44, 32),
}
const attest = { tlsKeyHash: fill(0x11, 32), nonce: fill(0x22, 32), configHash: fill(0x33, 32) }
const snp = { publicKey: fill(0x11, 32), configHash: fill(0x22, 32) }

describe('report data', () => {
  test('for a batch', () => {
    const fields = `01020304${'11'.repeat(32)}${'22'.repeat(16)}0000000102030405${'33'.repeat(32)}${'44'.repeat(32)}`
    const reportData = computeTdxReportData(tdx)
    expect(toHex(reportData)).toBe(sha512(`${ascii('countersign/tdx-report/v1')}00${fields}`))
    expect(reportData).toHaveLength(64)
  })

  test('for the enclave’s TLS key', () => {
    const fields = `${'11'.repeat(32)}${'22'.repeat(32)}${'33'.repeat(32)}`
    expect(toHex(computeEnclaveAttestReportData(attest))).toBe(
      sha512(`${ascii('countersign/enclave-attest/v1')}00${fields}`),
    )
  })

  test('for the coordinator', () => {
    const fields = `${'11'.repeat(32)}${'22'.repeat(32)}`
    expect(toHex(computeSnpReportData(snp))).toBe(sha512(`${ascii('countersign/snp-report/v1')}00${fields}`))
  })

  test('every field changes the result', () => {
    const others = [
      { treeSize: 1 },
      { root: fill(0, 32) },
      { bootId: fill(0, 16) },
      { batchSequence: 0 },
      { previousBatchHash: firstPreviousBatchHash() },
      { configHash: fill(0, 32) },
    ]
    const all = [tdx, ...others.map((other) => ({ ...tdx, ...other }))].map((one) => toHex(computeTdxReportData(one)))
    expect(new Set(all).size).toBe(all.length)
  })

  test('a batch hash is SHA-256 of its report data; the first batch of a boot has a previous hash of zeros', () => {
    const reportData = computeTdxReportData(tdx)
    expect(toHex(hashBatch(reportData))).toBe(createHash('sha256').update(reportData).digest('hex'))
    expect(toHex(firstPreviousBatchHash())).toBe('00'.repeat(32))
    firstPreviousBatchHash().fill(1)
    expect(toHex(firstPreviousBatchHash())).toBe('00'.repeat(32))
  })

  test.each([
    ['root', 32],
    ['bootId', 16],
    ['previousBatchHash', 32],
    ['configHash', 32],
  ])('batch: rejects %s of other than %i bytes', (name, length) => {
    for (const wrong of [length - 1, length + 1, 0]) {
      expect(() => computeTdxReportData({ ...tdx, [name]: fill(0, wrong) })).toThrow(withCode('invalid_length'))
    }
    expect(() => computeTdxReportData({ ...tdx, [name]: '00'.repeat(length) })).toThrow(withCode('invalid_length'))
  })

  test.each(['tlsKeyHash', 'nonce', 'configHash'])('TLS key: rejects %s of other than 32 bytes', (name) => {
    for (const wrong of [31, 33, 0]) {
      expect(() => computeEnclaveAttestReportData({ ...attest, [name]: fill(0, wrong) })).toThrow(
        withCode('invalid_length'),
      )
    }
  })

  test.each(['publicKey', 'configHash'])('coordinator: rejects %s of other than 32 bytes', (name) => {
    for (const wrong of [31, 33, 0]) {
      expect(() => computeSnpReportData({ ...snp, [name]: fill(0, wrong) })).toThrow(withCode('invalid_length'))
    }
  })

  test('rejects counters out of range', () => {
    for (const treeSize of [0, -1, 1.5, 2 ** 32]) {
      expect(() => computeTdxReportData({ ...tdx, treeSize })).toThrow(withCode('invalid_integer'))
    }
    for (const batchSequence of [-1, 1.5, 2 ** 53]) {
      expect(() => computeTdxReportData({ ...tdx, batchSequence })).toThrow(withCode('invalid_integer'))
    }
  })

  test('a batch hash covers 64 bytes', () => {
    for (const wrong of [0, 32, 63, 65]) expect(() => hashBatch(fill(0, wrong))).toThrow(withCode('invalid_length'))
  })

  const both = { ed25519: fill(1, 32), mlDsa65: fill(2, 1952), configHash: fill(3, 32) }

  test('for the coordinator with both keys: the longer one by its hash', () => {
    const hashed = createHash('sha256').update(both.mlDsa65).digest()
    const parts = [Buffer.from('countersign/snp-report/v2\0'), both.ed25519, hashed, both.configHash]
    expect(toHex(computeSnpReportDataV2(both))).toBe(createHash('sha512').update(Buffer.concat(parts)).digest('hex'))
  })

  test.each(Object.keys(both) as (keyof typeof both)[])('both keys: rejects %s of another length', (name) => {
    for (const wrong of [0, both[name].length - 1, both[name].length + 1]) {
      expect(() => computeSnpReportDataV2({ ...both, [name]: fill(0, wrong) })).toThrow(withCode('invalid_length'))
    }
  })
})
