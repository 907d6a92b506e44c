import {
  concatBytes,
  type DrandBeacon,
  type DrandWitness,
  fromHex,
  toEntropyMessage,
  toHex,
  toRoundTimeMs,
  toU64be,
} from '@countersign/protocol/core'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { derive, developmentSeed } from './keys.ts'

/** A drand network of one party, with a round every three seconds: it signs as a real one, with a public key pair. */
export type SimulatedBeacon = {
  beacon: DrandBeacon
  /** The signature over a round, 48 bytes, hex. `tag` is the domain; default: drand's. */
  signRound(round: number, tag?: string): string
  /** The newest round at a time. */
  getRound(at: Date): DrandWitness
}

/** The same seed gives the same rounds. */
export function createSimulatedBeacon(seed: string = developmentSeed): SimulatedBeacon {
  const { shortSignatures } = bls12_381
  const secret = sha256(new TextEncoder().encode(`${seed} beacon`))
  const { secretKey, publicKey } = shortSignatures.keygen(concatBytes(secret, secret.subarray(0, 16)))
  const beacon: DrandBeacon = {
    key: toHex(publicKey.toBytes()),
    chainHash: toHex(sha256(new TextEncoder().encode(`${seed} beacon chain`))),
    genesisS: 1_500_000_000,
    periodS: 3,
  }

  function signRound(round: number, tag = 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_'): string {
    const message = shortSignatures.hash(sha256(toU64be(round)), tag)
    return toHex(shortSignatures.sign(message, secretKey).toBytes())
  }

  return {
    beacon,
    signRound,
    getRound(at) {
      const sequence = Math.floor((at.getTime() / 1000 - beacon.genesisS) / beacon.periodS) + 1
      const signatureHex = signRound(sequence)
      return {
        kind: 'drand',
        source: 'drand/simulated',
        chainHash: beacon.chainHash,
        valueHex: toHex(sha256(fromHex(signatureHex))),
        signatureHex,
        publicKey: beacon.key,
        timestamp: new Date(toRoundTimeMs(beacon, sequence)).toISOString(),
        sequence,
      }
    },
  }
}

/** A simulated entropy satellite. It signs as a real one, with a public key pair. */
export type SimulatedSatellite = {
  /** 32 bytes, hex. Verifiers know this key as mock. */
  publicKey: string
  /** 32 bytes, hex. Not a secret. For callers with a faster Ed25519. */
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
