import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import {
  computeBackupReportData,
  computeDonorReportData,
  computeJoinerReportData,
  computeRecoveryReportData,
  hashRootSecretPolicy,
  hashShare,
  toRootSecretName,
  toShareContext,
  toSubmissionContext,
} from './rootSecret.ts'

const fill = (value: number, length = 32) => new Uint8Array(length).fill(value)
const hash = (algorithm: string, preimage: string) =>
  createHash(algorithm).update(Buffer.from(preimage, 'hex')).digest('hex')
const tag = (name: string) => Buffer.from(`countersign/${name}/v1\0`).toString('hex')
const run = (value: string) => value.repeat(32)

const joiner = { challenge: fill(0x11), nonce: fill(0x22), publicKey: fill(0x33), configHash: fill(0x44) }
const donor = { ...joiner, enc: fill(0x55), ciphertextHash: fill(0x66) }
const backup = { backupHash: fill(0x11), configHash: fill(0x22) }
const recovery = { nonce: fill(0x11), publicKey: fill(0x22), backupHash: fill(0x33), configHash: fill(0x44) }
const share = {
  policyHash: fill(0x11),
  configHash: fill(0x22),
  commitment: fill(0x33),
  threshold: 0x01020304,
  index: 0x05060708,
}
const submission = { ...backup, index: 0x01020304 }

describe('root secret preimages', () => {
  test('report data of a joiner’s quote', () => {
    const fields = `01${run('11')}${run('22')}${run('33')}${run('44')}`
    expect(toHex(computeJoinerReportData(joiner))).toBe(hash('sha512', `${tag('key-transfer')}${fields}`))
  })

  test('report data of a donor’s quote', () => {
    const fields = `02${run('11')}${run('22')}${run('33')}${run('55')}${run('66')}${run('44')}`
    expect(toHex(computeDonorReportData(donor))).toBe(hash('sha512', `${tag('key-transfer')}${fields}`))
  })

  test('report data of a quote over a backup', () => {
    const fields = `${run('11')}${run('22')}`
    expect(toHex(computeBackupReportData(backup))).toBe(hash('sha512', `${tag('root-backup')}${fields}`))
  })

  test('report data of an enclave in recovery', () => {
    const fields = `${run('11')}${run('22')}${run('33')}${run('44')}`
    expect(toHex(computeRecoveryReportData(recovery))).toBe(hash('sha512', `${tag('root-recovery')}${fields}`))
  })

  test('HPKE info of a share, to its custodian and to the enclave', () => {
    const fields = `${run('11')}${run('22')}${run('33')}0102030405060708`
    expect(toHex(toShareContext(share))).toBe(`${tag('root-share')}${fields}`)
    expect(toHex(toSubmissionContext(submission))).toBe(`${tag('root-submission')}${run('11')}${run('22')}01020304`)
  })

  test('the hash of a share', () => {
    const preimage = `${tag('root-share-hash')}01020304${'11'.repeat(33)}`
    expect(toHex(hashShare({ index: 0x01020304, share: fill(0x11, 33) }))).toBe(hash('sha256', preimage))
  })

  test('the hash of a policy: SHA-256 of its canonical JSON, in any spelling', () => {
    const expected = createHash('sha256').update('{"a":[1],"b":"c"}').digest('hex')
    expect(toHex(hashRootSecretPolicy({ b: 'c', a: [1] }))).toBe(expected)
    expect(toRootSecretName(expected)).toBe(`attested:sha256:${expected}`)
  })
})

test('every field changes the result', () => {
  const all = [
    ...[{}, { challenge: fill(0) }, { nonce: fill(0) }, { publicKey: fill(0) }, { configHash: fill(0) }].flatMap(
      (change) => [computeJoinerReportData({ ...joiner, ...change }), computeDonorReportData({ ...donor, ...change })],
    ),
    computeDonorReportData({ ...donor, enc: fill(0) }),
    computeDonorReportData({ ...donor, ciphertextHash: fill(0) }),
    ...[{}, { backupHash: fill(0) }, { configHash: fill(0) }].flatMap((change) => [
      computeBackupReportData({ ...backup, ...change }),
      computeRecoveryReportData({ ...recovery, ...change }),
    ]),
    computeRecoveryReportData({ ...recovery, nonce: fill(0) }),
    computeRecoveryReportData({ ...recovery, publicKey: fill(0) }),
  ].map(toHex)
  expect(new Set(all).size).toBe(all.length)
})

describe('rejects fields of another length', () => {
  test.each<[string, (parameters: never) => unknown, Record<string, unknown>]>([
    ['joiner', computeJoinerReportData, joiner],
    ['donor', computeDonorReportData, donor],
    ['backup', computeBackupReportData, backup],
    ['recovery', computeRecoveryReportData, recovery],
    ['share', toShareContext, share],
    ['submission', toSubmissionContext, submission],
  ])('%s', (_, compute, parameters) => {
    for (const [name, value] of Object.entries(parameters)) {
      const wrong = typeof value === 'number' ? [-1, 0.5, 2 ** 32] : [fill(0, 31), fill(0, 33), fill(0, 0)]
      const code = typeof value === 'number' ? 'invalid_integer' : 'invalid_length'
      for (const other of wrong) {
        expect(() => compute({ ...parameters, [name]: other } as never)).toThrow(withCode(code))
      }
    }
  })

  test('rejects a share of other than 33 bytes', () => {
    for (const length of [0, 32, 34]) {
      expect(() => hashShare({ index: 0, share: fill(0, length) })).toThrow(withCode('invalid_length'))
    }
  })
})
