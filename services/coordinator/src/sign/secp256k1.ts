import { createRequire } from 'node:module'
import * as wasm from 'tiny-secp256k1'

/** Recovers the uncompressed public key (65 bytes) from a signature. Undefined if there is none. */
export type Recover = (digest: Uint8Array, signature: Uint8Array, recoveryId: 0 | 1) => Uint8Array | undefined

type Native = {
  ecdsaRecover(signature: Uint8Array, recoveryId: number, digest: Uint8Array, isCompressed: false): Uint8Array
}

/**
 * libsecp256k1 as native code, several times faster than WebAssembly. Undefined if the package has no build for this machine. It has one for
 * x64, which includes SEV-SNP machines: decision 6.
 */
export function loadNative(): Recover | undefined {
  let native: Native
  try {
    // Load the inner path: the package's entry falls back silently to JavaScript.
    native = createRequire(import.meta.url)('secp256k1/bindings.js')
  } catch {
    return undefined
  }
  return (digest, signature, recoveryId) => {
    try {
      return native.ecdsaRecover(signature, recoveryId, digest, false)
    } catch {
      return undefined
    }
  }
}

export const recoverWithWasm: Recover = (digest, signature, recoveryId) => {
  try {
    return wasm.recover(digest, signature, recoveryId, false) ?? undefined
  } catch {
    return undefined
  }
}

export const recover: Recover = loadNative() ?? recoverWithWasm
