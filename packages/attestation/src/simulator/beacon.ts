import { concatBytes, type DrandBeacon, type DrandWitness, toHex, toRoundTimeMs, toU64be } from '@countersign/protocol'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { sha256 } from '@noble/hashes/sha2.js'

/** A drand network of one party, with a round every three seconds. The same seed gives the same rounds. */
export function createSimulatedBeacon(seed: string) {
  const { shortSignatures } = bls12_381
  const secret = sha256(new TextEncoder().encode(`${seed} beacon`))
  const { secretKey, publicKey } = shortSignatures.keygen(concatBytes(secret, secret.subarray(0, 16)))
  const beacon: DrandBeacon = {
    key: toHex(publicKey.toBytes()),
    chainHash: toHex(sha256(new TextEncoder().encode(`${seed} beacon chain`))),
    genesisS: 1_500_000_000,
    periodS: 3,
  }
  return {
    beacon,
    /** The newest round at a time. */
    getRound(at: Date): DrandWitness {
      const sequence = Math.floor((at.getTime() / 1000 - beacon.genesisS) / beacon.periodS) + 1
      const message = shortSignatures.hash(sha256(toU64be(sequence)), 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_')
      const signature = shortSignatures.sign(message, secretKey).toBytes()
      return {
        kind: 'drand',
        source: 'drand/simulated',
        chainHash: beacon.chainHash,
        valueHex: toHex(sha256(signature)),
        signatureHex: toHex(signature),
        publicKey: beacon.key,
        timestamp: new Date(toRoundTimeMs(beacon, sequence)).toISOString(),
        sequence,
      }
    },
  }
}
