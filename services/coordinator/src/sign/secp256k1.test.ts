import { createHash } from 'node:crypto'
import { signRecoverable } from 'tiny-secp256k1'
import { expect, test } from 'vitest'
import { loadNative, recover, recoverWithWasm } from './secp256k1.ts'

const bytesOf = (text: string) => new Uint8Array(createHash('sha256').update(text).digest())
const native = loadNative()

test('uses native code where the package has it: on x64', () => {
  expect(native !== undefined).toBe(process.arch === 'x64')
  expect(recover === recoverWithWasm).toBe(native === undefined)
})

test('native code and WebAssembly recover the same key, and none from wrong bits', () => {
  const faulty = native ?? recover
  for (let index = 0; index < 500; index++) {
    const digest = bytesOf(`digest ${index}`)
    const { signature, recoveryId } = signRecoverable(digest, bytesOf(`key ${index}`))
    const changed = Uint8Array.from(signature)
    changed[index % 64] = (changed[index % 64] ?? 0) ^ (1 << (index % 8))
    for (const bytes of [signature, changed]) {
      expect(faulty(digest, bytes, recoveryId as 0 | 1)).toEqual(recoverWithWasm(digest, bytes, recoveryId as 0 | 1))
    }
  }
})

test.each([
  ['all zero', new Uint8Array(64)],
  ['beyond the order', new Uint8Array(64).fill(0xff)],
  ['too short', new Uint8Array(63).fill(1)],
])('a signature that is %s has no key', (_, signature) => {
  for (const find of [recover, recoverWithWasm]) expect(find(bytesOf('digest'), signature, 0)).toBeUndefined()
})
