import { describe, expect, test } from 'vitest'
import { emptyManifest, type MinimumTcb } from './parseManifest.ts'
import { toAnchors, toPolicy } from './toAnchors.ts'

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
  test('options are added to the manifests’ lists', () => {
    const manifest = {
      ...emptyManifest,
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
      ...emptyManifest,
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
      // Not merged: each must be satisfied.
      logWitnesses: [
        { witnesses: ['l'], quorum: 1 },
        { witnesses: ['L', 'M'], quorum: 2 },
      ],
    })
  })

  test('without options and manifests there are none, so every anchor step is skipped', () => {
    expect(toAnchors([emptyManifest])).toEqual(none)
  })

  test('merges the events of two manifests by name', () => {
    const withEvents = (events: Record<string, string[]>) => ({
      ...emptyManifest,
      enclave: { ...emptyManifest.enclave, events },
    })
    expect(toAnchors([withEvents({ a: ['1'] }), withEvents({ a: ['2'], b: ['3'] })]).events).toEqual({
      a: ['1', '2'],
      b: ['3'],
    })
  })
  const mergeTcb = (...minimums: (MinimumTcb | undefined)[]) =>
    toAnchors(
      minimums.map((minimumTcb) => ({
        ...emptyManifest,
        coordinator: { ...emptyManifest.coordinator, ...(minimumTcb === undefined ? {} : { minimumTcb }) },
      })),
    ).coordinatorMinimumTcb

  test('uses the highest of each patch level', () => {
    const merged = mergeTcb({ Milan: { bl: 4, snp: 20 } }, undefined, { Milan: { snp: 24, ucode: 200 } })
    expect(merged).toEqual({ Milan: { fmc: 0, bl: 4, tee: 0, snp: 24, ucode: 200 } })
  })

  test('accepts a product only if every manifest with patch levels names it', () => {
    const merged = mergeTcb({ Milan: {}, Genoa: { bl: 1 } }, { Genoa: {}, Turin: {} })
    expect(Object.keys(merged ?? {})).toEqual(['Genoa'])
    expect(mergeTcb({ Milan: {} }, { Turin: {} })).toEqual({})
  })
})

const withNumber = (minimumTcbEvaluationDataNumber: number) => ({
  ...emptyManifest,
  enclave: { ...emptyManifest.enclave, minimumTcbEvaluationDataNumber },
})
const merge = (...manifests: (typeof emptyManifest)[]) => toPolicy({ statuses: [] }, manifests)

describe('the policy', () => {
  test('without minimums in a manifest there are none', () => {
    expect(merge(emptyManifest)).toEqual({
      signer: { statuses: ['UpToDate'] },
      time: { maximumEventDelayS: 259_200 },
    })
  })

  test('adds statuses to UpToDate', () => {
    expect(toPolicy({ statuses: ['OutOfDate'] }, []).signer).toEqual({ statuses: ['UpToDate', 'OutOfDate'] })
  })

  test('uses the highest evaluation data number, in any order', () => {
    for (const manifests of [
      [withNumber(3), withNumber(17), emptyManifest],
      [withNumber(17), withNumber(3)],
    ]) {
      expect(merge(...manifests).signer).toMatchObject({ minimumTcbEvaluationDataNumber: 17 })
    }
  })

  test('uses the shortest time to the event; only a reader can extend it, and never beyond a manifest', () => {
    const withDelay = (maximumEventDelayS: number) => ({ ...emptyManifest, maximumEventDelayS })
    const limitOf = (own: number | undefined, ...manifests: (typeof emptyManifest)[]) =>
      toPolicy({ statuses: [], maximumEventDelayS: own }, manifests).time?.maximumEventDelayS
    expect(limitOf(undefined, withDelay(7200), withDelay(3600), emptyManifest)).toBe(3600)
    expect(limitOf(1_000_000, emptyManifest)).toBe(1_000_000)
    expect(limitOf(1_000_000, withDelay(3600))).toBe(3600)
    expect(limitOf(60, withDelay(3600))).toBe(60)
  })
})
