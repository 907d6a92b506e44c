import type { DrandWitness, EntropyWitness } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import v1 from '../../protocol/vectors/protocol-v1.vectors.json' with { type: 'json' }
import v2 from '../../protocol/vectors/protocol-v2.vectors.json' with { type: 'json' }
import { toKey } from '../test/policies.ts'
import type { TimeSource } from './policy.ts'
import { verifySample } from './verifySample.ts'

const { value, signature, timestamp, timestampMs, sequence } = v1.entropy
const { publicKey } = v1.keys.satellite
const sample: EntropyWitness = {
  source: 'test',
  valueHex: value,
  signatureHex: signature,
  publicKey,
  timestamp,
  sequence,
}
const satellite: TimeSource = { kind: 'satellite', key: publicKey }
const beacon: TimeSource = { kind: 'drand', ...v2.drand.beacon }
const round = v2.drand.witness as DrandWitness

describe('a sample as a proof of time', () => {
  test('accepts a satellite that the policy names, with the signed time', () => {
    expect(verifySample([beacon, satellite], sample)).toEqual({ source: satellite, timeMs: timestampMs })
  })

  test('accepts a beacon that the policy names', () => {
    expect(verifySample([satellite, beacon], round)).toEqual({ source: beacon, timeMs: Date.parse(round.timestamp) })
  })

  test.each<[string, readonly TimeSource[] | undefined, object]>([
    ['no policy with a schedule', undefined, sample],
    ['a satellite that is not named', [{ kind: 'satellite', key: toKey(1) }], sample],
    ['a named key that did not sign', [{ kind: 'satellite', key: toKey(1) }], { ...sample, publicKey: toKey(1) }],
    ['a later time than was signed', [satellite], { ...sample, timestamp: '2026-01-02T03:04:05.123Z' }],
    ['another sequence number', [satellite], { ...sample, sequence: sequence + 1 }],
    ['another value', [satellite], { ...sample, valueHex: '00'.repeat(32) }],
    ['a signature of zeros', [satellite], { ...sample, signatureHex: '00'.repeat(64) }],
    ['a time in another spelling', [satellite], { ...sample, timestamp: '2025-01-02T03:04:05.123+00:00' }],
    ['a member more', [satellite], { ...sample, kind: 'satellite' }],
    ['a round for a satellite', [satellite], round],
    ['a sample for a beacon', [beacon], sample],
    ['a beacon with another genesis', [{ ...beacon, genesisS: v2.drand.beacon.genesisS + 1 }], round],
    ['a beacon with another chain', [{ ...beacon, chainHash: '00'.repeat(32) }], round],
    ['a later round than was signed', [beacon], { ...round, sequence: round.sequence + 1 }],
    ['a round with a later time', [beacon], { ...round, timestamp: '2026-01-02T03:03:52.000Z' }],
    ['a round with another value', [beacon], { ...round, valueHex: '00'.repeat(32) }],
  ])('not with %s', (_, time, witness) => {
    expect(verifySample(time, witness as EntropyWitness)).toBeUndefined()
  })
})
