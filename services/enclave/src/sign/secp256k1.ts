import { createRequire } from 'node:module'
import * as wasm from 'tiny-secp256k1'

type RecoverableSignature = { signature: Uint8Array; recoveryId: number }

/** RFC 6979 over a digest, low s. */
export type SignRecoverable = (digest: Uint8Array, privateKey: Uint8Array) => RecoverableSignature

type Native = {
  ecdsaSign(digest: Uint8Array, privateKey: Uint8Array): { signature: Uint8Array; recid: number }
}

/**
 * libsecp256k1 as native code: constant time, and several times faster than WebAssembly. Undefined if the package has no build for this
 * machine. It has one for x64, which TDX machines are. Both give the same bytes: decision 6.
 */
export function loadNative(): SignRecoverable | undefined {
  let native: Native
  try {
    // Load the inner path: the package's entry falls back silently to JavaScript.
    native = createRequire(import.meta.url)('secp256k1/bindings.js')
  } catch {
    return undefined
  }
  return (digest, privateKey) => {
    const { signature, recid } = native.ecdsaSign(digest, privateKey)
    return { signature, recoveryId: recid }
  }
}

export const signWithWasm: SignRecoverable = (digest, privateKey) => wasm.signRecoverable(digest, privateKey)

export const signRecoverable: SignRecoverable = loadNative() ?? signWithWasm
