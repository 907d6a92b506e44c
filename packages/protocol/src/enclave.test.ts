import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { callerHeaders, enclavePaths, toCallerMessage } from './enclave.ts'
import { toHex } from './hex.ts'

const bodyHash = new Uint8Array(createHash('sha256').update('{}').digest())

test('a caller’s signature covers tag, time, body hash and path', () => {
  const tag = Buffer.from('countersign/caller/v1\0').toString('hex')
  const message = toHex(toCallerMessage({ path: '/attest', timeMs: 0x0102030405, bodyHash }))
  expect(message).toBe(`${tag}0000000102030405${toHex(bodyHash)}${Buffer.from('/attest').toString('hex')}`)
})

test('rejects a body hash of other than 32 bytes, and a time out of range', () => {
  expect(() => toCallerMessage({ path: '/', timeMs: 1, bodyHash: new Uint8Array(31) })).toThrow(
    withCode('invalid_length'),
  )
  expect(() => toCallerMessage({ path: '/', timeMs: -1, bodyHash })).toThrow(withCode('invalid_integer'))
})

test('has six calls and four headers', () => {
  expect(Object.values(enclavePaths)).toEqual(['/attest', '/open-session', '/sign', '/vault', '/log', '/release'])
  expect(Object.values(callerHeaders)).toEqual([
    'countersign-caller',
    'countersign-time',
    'countersign-signature',
    'countersign-body',
  ])
})
