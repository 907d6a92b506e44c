import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import { toReleaseMessage, toReleaseMessageV2 } from './release.ts'
import type { Preimage } from './tags.ts'

const hashes: Preimage<'release'> = {
  leaf: new Uint8Array(32).fill(0x11),
  collateralHash: new Uint8Array(32).fill(0x22),
  selfAttestationHash: new Uint8Array(32).fill(0x33),
  witnessHash: new Uint8Array(32).fill(0x44),
}

test('a release covers tag, leaf, collateral, self-attestation and sample', () => {
  const tag = Buffer.from('countersign/release/v1\0').toString('hex')
  const fields = ['11', '22', '33', '44'].map((byte) => byte.repeat(32))
  expect(toHex(toReleaseMessage(hashes))).toBe([tag, ...fields].join(''))
})

test.each(Object.keys(hashes))('rejects %s of other than 32 bytes', (name) => {
  for (const length of [0, 31, 33, 64]) {
    const wrong = { ...hashes, [name]: new Uint8Array(length) }
    expect(() => toReleaseMessage(wrong)).toThrow(withCode('invalid_length'))
  }
})

const blocks: Preimage<'releaseV2'> = {
  batchHash: new Uint8Array(32).fill(0x11),
  collateralHash: new Uint8Array(32).fill(0x22),
  coordinatorHash: new Uint8Array(32).fill(0x33),
}

test('a release of version 2 covers tag, batch, collateral and coordinator', () => {
  const tag = Buffer.from('countersign/release/v2\0').toString('hex')
  expect(toHex(toReleaseMessageV2(blocks))).toBe(`${tag}${'11'.repeat(32)}${'22'.repeat(32)}${'33'.repeat(32)}`)
})

test.each(Object.keys(blocks))('version 2: rejects %s of other than 32 bytes', (name) => {
  for (const length of [0, 31, 33, 64]) {
    const wrong = { ...blocks, [name]: new Uint8Array(length) }
    expect(() => toReleaseMessageV2(wrong)).toThrow(withCode('invalid_length'))
  }
})
