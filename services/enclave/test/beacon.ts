import { hash } from 'node:crypto'
import { type DrandBeacon, type DrandWitness, toRoundTimeMs, toU64be } from '@countersign/protocol'
import { bls12_381 } from '@noble/curves/bls12-381.js'

const { shortSignatures } = bls12_381
const { secretKey, publicKey } = shortSignatures.keygen(new Uint8Array(48).fill(1))

/** A public beacon whose key is ours, so that rounds of any time can be made. */
export const beacon: DrandBeacon = {
  key: publicKey.toHex(),
  chainHash: 'ab'.repeat(32),
  genesisS: 1_750_000_000,
  periodS: 3,
}

/** The round that is due at a time, or was due last. */
export function createRound(timeMs: number): DrandWitness {
  const round = 1 + Math.floor((timeMs / 1000 - beacon.genesisS) / beacon.periodS)
  const message = shortSignatures.hash(hash('sha256', toU64be(round), 'buffer'))
  const signature = shortSignatures.sign(message, secretKey).toBytes()
  return {
    kind: 'drand',
    source: 'drand/test',
    chainHash: beacon.chainHash,
    valueHex: hash('sha256', signature, 'hex'),
    signatureHex: Buffer.from(signature).toString('hex'),
    publicKey: beacon.key,
    timestamp: new Date(toRoundTimeMs(beacon, round)).toISOString(),
    sequence: round,
  }
}
