import { createPrivateKey, randomBytes, sign } from 'node:crypto'
import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import { type EntropyWitness, toEntropyMessage } from '@countersign/protocol'

const satellite = createSimulatedSatellite()
/** The PKCS #8 prefix of an Ed25519 key (RFC 8410 §7) for its 32 bytes. Node's Ed25519 is faster than the simulator's. */
const der = Buffer.from(`302e020100300506032b657004220420${satellite.privateKey}`, 'hex')
const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
let last = 0

/** The key of the simulated satellite. */
export const satelliteKey = satellite.publicKey

/** A sample signed by the simulated satellite, dated now by default. */
export function createWitness(timestampMs = Date.now(), value: Uint8Array = randomBytes(32)): EntropyWitness {
  last += 1
  return {
    source: 'simulated-satellite',
    valueHex: Buffer.from(value).toString('hex'),
    signatureHex: sign(null, toEntropyMessage({ value, timestampMs, sequence: last }), key).toString('hex'),
    publicKey: satellite.publicKey,
    timestamp: new Date(timestampMs).toISOString(),
    sequence: last,
  }
}
