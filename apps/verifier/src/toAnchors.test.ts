import { describe, expect, test } from 'vitest'
import { releaseManifest } from './releaseManifest.ts'
import { findOpenRegisters, toAnchors } from './toAnchors.ts'

const none = {
  measurements: [],
  configHashes: [],
  coordinatorMeasurements: [],
  coordinatorConfigHashes: [],
  entropyKeys: [],
}

describe('anchors', () => {
  test('options add to what manifests list', () => {
    const manifest = {
      ...releaseManifest,
      enclave: { measurements: [{ mrTd: 'a', rtmr0: 'b' }], configHashes: ['c'], events: { e: ['f'] } },
      coordinator: { measurements: ['g'], configHashes: ['h'] },
      entropyKeys: ['i'],
    }
    const options = {
      measurements: ['A'],
      configHashes: ['C'],
      coordinatorMeasurements: ['G'],
      coordinatorConfigHashes: ['H'],
      entropyKeys: ['I'],
    }
    expect(toAnchors(options, [manifest])).toEqual({
      measurements: [{ mrTd: 'a', rtmr0: 'b' }, { mrTd: 'A' }],
      events: { e: ['f'] },
      configHashes: ['c', 'C'],
      coordinatorMeasurements: ['g', 'G'],
      coordinatorConfigHashes: ['h', 'H'],
      entropyKeys: ['i', 'I'],
    })
  })

  test('without options and manifests there are none, so that every anchor step is a skip', () => {
    expect(toAnchors(none, [releaseManifest])).toEqual(none)
  })

  test('events of two manifests are brought together by name', () => {
    const withEvents = (events: Record<string, string[]>) => ({
      ...releaseManifest,
      enclave: { ...releaseManifest.enclave, events },
    })
    expect(toAnchors(none, [withEvents({ a: ['1'] }), withEvents({ a: ['2'], b: ['3'] })]).events).toEqual({
      a: ['1', '2'],
      b: ['3'],
    })
  })
})

describe('registers that nothing was held against', () => {
  const measured = { mrTd: 'a', rtmr0: '0', rtmr1: '1', rtmr2: '2', rtmr3: '3' }

  test('MRTD alone leaves all four open', () => {
    expect(findOpenRegisters(measured, { measurements: [{ mrTd: 'a' }] })).toEqual(['RTMR0', 'RTMR1', 'RTMR2', 'RTMR3'])
  })

  test('a full measurement leaves none open, whatever else is listed', () => {
    expect(findOpenRegisters(measured, { measurements: [{ mrTd: 'a' }, measured] })).toEqual([])
  })

  test('a measurement that does not match closes nothing', () => {
    const other = { ...measured, rtmr0: 'x' }
    expect(findOpenRegisters(measured, { measurements: [other, { mrTd: 'a', rtmr0: '0' }] })).toEqual([
      'RTMR1',
      'RTMR2',
      'RTMR3',
    ])
  })

  test('runtime events stand for RTMR3', () => {
    const { rtmr3: _, ...open } = measured
    expect(findOpenRegisters(measured, { measurements: [open] })).toEqual(['RTMR3'])
    expect(findOpenRegisters(measured, { measurements: [open], events: { e: ['1'] } })).toEqual([])
  })
})
