import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { loadNative, signRecoverable, signWithWasm } from './secp256k1.ts'

const bytesOf = (text: string) => new Uint8Array(createHash('sha256').update(text).digest())
const native = loadNative()

test('uses native code where the package has it: on x64', () => {
  expect(native !== undefined).toBe(process.arch === 'x64')
  expect(signRecoverable === signWithWasm).toBe(native === undefined)
})

test('native code and WebAssembly create the same signatures, 2,000 times', () => {
  const sign = native ?? signRecoverable
  for (let index = 0; index < 2_000; index++) {
    const [digest, key] = [bytesOf(`digest ${index}`), bytesOf(`key ${index}`)]
    const [first, second] = [sign(digest, key), signWithWasm(digest, key)]
    expect(Buffer.from(first.signature).equals(second.signature)).toBe(true)
    expect(first.recoveryId).toBe(second.recoveryId)
  }
})

test.each([
  ['zero', new Uint8Array(32)],
  ['the order or more', new Uint8Array(32).fill(0xff)],
  ['too short', new Uint8Array(31).fill(1)],
])('both reject a private key that is %s', (_, key) => {
  for (const sign of [signRecoverable, signWithWasm]) expect(() => sign(bytesOf('digest'), key)).toThrow()
})
