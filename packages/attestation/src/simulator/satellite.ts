import { toEntropyMessage, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { developmentSeed } from './developmentSeed.ts'
import { derive } from './keys.ts'

/** A simulated entropy satellite: it signs as a real one does, with a key that everybody knows. */
export type SimulatedSatellite = {
  /** 32 bytes, hex. Verifiers know this key as mock. */
  publicKey: string
  /** 32 bytes, hex: not a secret; for callers with a faster Ed25519. */
  privateKey: string
  /** The signature over a sample, 64 bytes, hex. */
  sign(sample: { value: Uint8Array; timestampMs: number; sequence: number }): string
}

export function createSimulatedSatellite(seed: string = developmentSeed): SimulatedSatellite {
  const secret = derive(seed, 'satellite', 32)
  return {
    publicKey: toHex(ed25519.getPublicKey(secret)),
    privateKey: toHex(secret),
    sign: (sample) => toHex(ed25519.sign(toEntropyMessage(sample), secret)),
  }
}
