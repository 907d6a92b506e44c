import { createRequire } from 'node:module'
import * as wasm from 'tiny-secp256k1'

/** The uncompressed key (65 bytes) that made a signature of a digest; undefined where none can have. */
export type Recover = (digest: Uint8Array, signature: Uint8Array, recoveryId: 0 | 1) => Uint8Array | undefined

type Native = {
  ecdsaRecover(signature: Uint8Array, recoveryId: number, digest: Uint8Array, isCompressed: false): Uint8Array
}

/**
 * libsecp256k1 as machine code, several times faster than as WebAssembly; undefined where the package brings none for this
 * machine. SEV-SNP machines are x64, and for that it does: decision 6.
 */
export function loadNative(): Recover | undefined {
  let native: Native
  try {
    // By its inner path: the package's own entry would fall back to code in JavaScript without a word.
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
