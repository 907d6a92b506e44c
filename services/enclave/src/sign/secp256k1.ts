import { createRequire } from 'node:module'
import * as wasm from 'tiny-secp256k1'

type RecoverableSignature = { signature: Uint8Array; recoveryId: number }

/** RFC 6979 over a digest, low s. */
export type SignRecoverable = (digest: Uint8Array, privateKey: Uint8Array) => RecoverableSignature

type Native = {
  ecdsaSign(digest: Uint8Array, privateKey: Uint8Array): { signature: Uint8Array; recid: number }
}

/**
 * libsecp256k1 as machine code, which runs in constant time and several times faster than as WebAssembly; undefined where the
 * package has none for this machine. It has one for x64, which TDX machines are. Both make the same bytes: decision 6.
 */
export function loadNative(): SignRecoverable | undefined {
  let native: Native
  try {
    // By its inner path: the package's own entry would fall back to code in JavaScript without a word.
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
