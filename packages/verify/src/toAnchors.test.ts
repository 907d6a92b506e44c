import { describe, expect, test } from 'vitest'
import { releaseManifest } from './releaseManifest.ts'
import { toAnchors } from './toAnchors.ts'

const none = {
  measurements: [],
  platforms: [],
  configHashes: [],
  coordinatorMeasurements: [],
  coordinatorConfigHashes: [],
  entropyKeys: [],
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
      coordinator: { measurements: ['g'], configHashes: ['h'] },
      entropyKeys: ['i'],
    }
    const options = {
      ...releaseManifest,
      enclave: {
        measurements: [{ mrTd: 'A' }, { mrTd: 'B', rtmr0: 'C', rtmr1: 'D', rtmr2: 'E' }],
        configHashes: ['C'],
        platforms: [{ ppid: 'J' }],
      },
      coordinator: { measurements: ['G'], configHashes: ['H'] },
      entropyKeys: ['I'],
    }
    expect(toAnchors([manifest, options])).toEqual({
      measurements: [{ mrTd: 'a', rtmr0: 'b' }, { mrTd: 'A' }, { mrTd: 'B', rtmr0: 'C', rtmr1: 'D', rtmr2: 'E' }],
      events: { e: ['f'] },
      platforms: [{ fmspc: 'j' }, { ppid: 'J' }],
      configHashes: ['c', 'C'],
      coordinatorMeasurements: ['g', 'G'],
      coordinatorConfigHashes: ['h', 'H'],
      entropyKeys: ['i', 'I'],
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
})
