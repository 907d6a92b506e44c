import { describe, expect, test } from 'vitest'
import type { MinimumTcb } from './parseManifest.ts'
import { releaseManifest } from './releaseManifest.ts'
import { toAnchors } from './toAnchors.ts'

const none = {
  measurements: [],
  platforms: [],
  configHashes: [],
  coordinatorMeasurements: [],
  coordinatorChips: [],
  coordinatorConfigHashes: [],
  entropyKeys: [],
  logWitnesses: [],
}

describe('anchors', () => {
  test('options add to what manifests list', () => {
    const manifest = {
      ...releaseManifest,
      enclave: {
        measurements: [{ mrTd: 'a', rtmr0: 'b' }],
        configHashes: ['c'],
        events: { e: ['f'] },
        platforms: [{ fmspc: 'j' }],
      },
      coordinator: { measurements: ['g'], configHashes: ['h'], chips: ['k'] },
      entropyKeys: ['i'],
      log: { witnesses: ['l'], quorum: 1 },
    }
    const options = {
      ...releaseManifest,
      enclave: {
        measurements: [{ mrTd: 'A' }, { mrTd: 'B', rtmr0: 'C', rtmr1: 'D', rtmr2: 'E' }],
        configHashes: ['C'],
        platforms: [{ ppid: 'J' }],
      },
      coordinator: { measurements: ['G'], configHashes: ['H'], chips: ['J'] },
      entropyKeys: ['I'],
      log: { witnesses: ['L', 'M'], quorum: 2 },
    }
    expect(toAnchors([manifest, options])).toEqual({
      measurements: [{ mrTd: 'a', rtmr0: 'b' }, { mrTd: 'A' }, { mrTd: 'B', rtmr0: 'C', rtmr1: 'D', rtmr2: 'E' }],
      events: { e: ['f'] },
      platforms: [{ fmspc: 'j' }, { ppid: 'J' }],
      configHashes: ['c', 'C'],
      coordinatorMeasurements: ['g', 'G'],
      coordinatorChips: ['k', 'J'],
      coordinatorConfigHashes: ['h', 'H'],
      entropyKeys: ['i', 'I'],
      // Not brought together: each must be met.
      logWitnesses: [
        { witnesses: ['l'], quorum: 1 },
        { witnesses: ['L', 'M'], quorum: 2 },
      ],
    })
  })

  test('without options and manifests there are none, so that every anchor step is a skip', () => {
    expect(toAnchors([releaseManifest])).toEqual(none)
  })

  test('events of two manifests are brought together by name', () => {
    const withEvents = (events: Record<string, string[]>) => ({
      ...releaseManifest,
      enclave: { ...releaseManifest.enclave, events },
    })
    expect(toAnchors([withEvents({ a: ['1'] }), withEvents({ a: ['2'], b: ['3'] })]).events).toEqual({
      a: ['1', '2'],
      b: ['3'],
    })
  })
  const mergeTcb = (...minimums: (MinimumTcb | undefined)[]) =>
    toAnchors(
      minimums.map((minimumTcb) => ({
        ...releaseManifest,
        coordinator: { ...releaseManifest.coordinator, ...(minimumTcb === undefined ? {} : { minimumTcb }) },
      })),
    ).coordinatorMinimumTcb

  test('the highest of each patch level decides', () => {
    const merged = mergeTcb({ Milan: { bl: 4, snp: 20 } }, undefined, { Milan: { snp: 24, ucode: 200 } })
    expect(merged).toEqual({ Milan: { fmc: 0, bl: 4, tee: 0, snp: 24, ucode: 200 } })
  })

  test('a product is accepted only where every manifest with patch levels names it', () => {
    const merged = mergeTcb({ Milan: {}, Genoa: { bl: 1 } }, { Genoa: {}, Turin: {} })
    expect(Object.keys(merged ?? {})).toEqual(['Genoa'])
    expect(mergeTcb({ Milan: {} }, { Turin: {} })).toEqual({})
  })
})
