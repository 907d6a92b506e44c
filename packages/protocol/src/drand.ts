import { bls12_381 } from '@noble/curves/bls12-381.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { cacheValid } from './cacheValid.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { type EntropyWitness, isSourceName, parseTimestamp } from './entropy.ts'
import { isNatural, toU64be } from './fields.ts'
import { fromHex, isHex, toHex } from './hex.ts'
import { hasExactMembers } from './plainObject.ts'

/** A drand network with the scheme `bls-unchained-g1-rfc9380`: one round per period, starting at genesis. */
export type DrandBeacon = {
  /** 96 bytes: a compressed point of G2. */
  key: string
  /** 32 bytes: the network's identifier. */
  chainHash: string
  genesisS: number
  periodS: number
}

/** The League of Entropy's mainnet network of three-second rounds; https://api.drand.sh/52db…e971/info. */
export const quicknet: DrandBeacon = {
  key: '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a',
  chainHash: '52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971',
  genesisS: 1_692_803_367,
  periodS: 3,
}

/**
 * Parses a beacon from the settings: `quicknet`, or `CHAINHASH:KEY:GENESIS_S:PERIOD_S`. Returns undefined for other text.
 *
 * @example
 * parseDrandBeacon('quicknet')?.periodS // 3
 */
export function parseDrandBeacon(text: string): DrandBeacon | undefined {
  if (text === 'quicknet') return quicknet
  const [, chainHash = '', key = '', genesis, period] =
    /^([0-9a-f]{64}):([0-9a-f]{192}):(0|[1-9]\d{0,14}):([1-9]\d{0,14})$/.exec(text) ?? []
  return isDrandKey(key) ? { key, chainHash, genesisS: Number(genesis), periodS: Number(period) } : undefined
}

/** A round of a public beacon as an entropy sample. Many signatures may use the same round. */
export type DrandWitness = {
  kind: 'drand'
  /** The display name. */
  source: string
  /** 32 bytes: the beacon's chain hash. */
  chainHash: string
  /** 32 bytes: SHA-256 of the signature. */
  valueHex: string
  /** 48 bytes: a compressed point of G1, the beacon's signature over the round. */
  signatureHex: string
  /** 96 bytes: the beacon's key. */
  publicKey: string
  /** When the round was due: ISO 8601 in UTC with milliseconds. */
  timestamp: string
  /** The round, from 1. */
  sequence: number
}

const WITNESS_MEMBERS = [
  'kind',
  'source',
  'chainHash',
  'valueHex',
  'signatureHex',
  'publicKey',
  'timestamp',
  'sequence',
] as const

/** Checks only the form of a drand sample, not its signature. */
export function isDrandWitness(value: unknown): value is DrandWitness {
  if (!hasExactMembers(value, WITNESS_MEMBERS) || value.kind !== 'drand') return false
  const { source, chainHash, valueHex, signatureHex, publicKey, timestamp, sequence } = value
  return (
    isSourceName(source) &&
    isHex(chainHash, 32) &&
    isHex(valueHex, 32) &&
    isHex(signatureHex, 48) &&
    isHex(publicKey, 96) &&
    typeof timestamp === 'string' &&
    parseTimestamp(timestamp) !== undefined &&
    isNatural(sequence) &&
    sequence > 0
  )
}

/** When a round of a beacon was due, in milliseconds. */
export function toRoundTimeMs({ genesisS, periodS }: Pick<DrandBeacon, 'genesisS' | 'periodS'>, round: number): number {
  return (genesisS + (round - 1) * periodS) * 1000
}

/**
 * Whether a sample is a round of this beacon: same chain and key, due at that time, a value that follows from the signature, and a valid
 * signature. The pairing takes tens of milliseconds in JavaScript.
 */
export function verifyDrandWitness(beacon: DrandBeacon, witness: DrandWitness): boolean {
  if (!isDrandWitness(witness)) return false
  const { chainHash, publicKey, sequence, signatureHex, timestamp, valueHex } = witness
  return (
    chainHash === beacon.chainHash &&
    publicKey === beacon.key &&
    parseTimestamp(timestamp) === toRoundTimeMs(beacon, sequence) &&
    valueHex === toHex(sha256(fromHex(signatureHex))) &&
    isRoundSigned({ publicKey, round: sequence, signature: signatureHex })
  )
}

/** `bls-unchained-g1-rfc9380`: the signature in G1 covers only the SHA-256 of the round number (drand `crypto/schemes.go`). */
export function isRoundSigned(signed: { publicKey: string; round: number; signature: string }): boolean {
  const { shortSignatures } = bls12_381
  try {
    const message = shortSignatures.hash(sha256(toU64be(signed.round)), 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_')
    const key = bls12_381.G2.Point.fromBytes(fromHex(signed.publicKey))
    return shortSignatures.verify(shortSignatures.Signature.fromBytes(fromHex(signed.signature)), message, key)
  } catch {
    // Not on the curve, in the wrong subgroup, or the point at infinity.
    return false
  }
}

/**
 * Whether a key is a point of the right subgroup, not infinity, in canonical encoding. The check takes 13 milliseconds. Results are cached,
 * because settings and policies repeat the same few keys.
 */
export const isDrandKey = cacheValid(checkDrandKey, 64)

function checkDrandKey(key: string): boolean {
  try {
    const point = bls12_381.G2.Point.fromBytes(fromHex(key))
    point.assertValidity()
    return !point.is0() && point.isTorsionFree() && point.toHex(true) === key
  } catch {
    return false
  }
}

/** A sample for one signature, or a beacon round, which many signatures may share. */
export type AnyWitness = EntropyWitness | DrandWitness

/**
 * SHA-256 of the canonical JSON of a whole sample, for releases of version 1 and statements of version 2. Unlike `hashEntropy`, it
 * covers the source's name and signature too.
 */
export function hashWitness(witness: AnyWitness): Uint8Array<ArrayBuffer> {
  return sha256(toCanonicalJson(witness))
}
