import { describe, expect, test } from 'vitest'
import type { MinimumTcb } from './parseManifest.ts'
import { releaseManifest } from './releaseManifest.ts'
import { toPolicy } from './toPolicy.ts'

const withNumber = (minimumTcbEvaluationDataNumber: number) => ({
  ...releaseManifest,
  enclave: { ...releaseManifest.enclave, minimumTcbEvaluationDataNumber },
})
const withTcb = (minimumTcb: MinimumTcb) => ({
  ...releaseManifest,
  coordinator: { ...releaseManifest.coordinator, minimumTcb },
})
const merge = (...manifests: (typeof releaseManifest)[]) => toPolicy({ statuses: [] }, manifests)

describe('the policy', () => {
  test('without floors in a manifest there are none', () => {
    expect(merge(releaseManifest)).toEqual({
      signer: { statuses: ['UpToDate'] },
      coordinator: {},
      time: { maximumEventDelayS: 259_200 },
    })
  })

  test('statuses come beside UpToDate', () => {
    expect(toPolicy({ statuses: ['OutOfDate'] }, []).signer).toEqual({ statuses: ['UpToDate', 'OutOfDate'] })
  })

  test('the highest evaluation data number decides, in whatever order', () => {
    for (const manifests of [
      [withNumber(3), withNumber(17), releaseManifest],
      [withNumber(17), withNumber(3)],
    ]) {
      expect(merge(...manifests).signer).toMatchObject({ minimumTcbEvaluationDataNumber: 17 })
    }
  })

  test('the shortest time to the event decides; only a reader lengthens it, and no manifest is overruled', () => {
    const withDelay = (maximumEventDelayS: number) => ({ ...releaseManifest, maximumEventDelayS })
    const limitOf = (own: number | undefined, ...manifests: (typeof releaseManifest)[]) =>
      toPolicy({ statuses: [], maximumEventDelayS: own }, manifests).time?.maximumEventDelayS
    expect(limitOf(undefined, withDelay(7200), withDelay(3600), releaseManifest)).toBe(3600)
    expect(limitOf(1_000_000, releaseManifest)).toBe(1_000_000)
    expect(limitOf(1_000_000, withDelay(3600))).toBe(3600)
    expect(limitOf(60, withDelay(3600))).toBe(60)
  })

  test('the highest of each patch level decides', () => {
    const { coordinator } = merge(
      withTcb({ Milan: { bl: 4, snp: 20 } }),
      releaseManifest,
      withTcb({ Milan: { snp: 24, ucode: 200 } }),
    )
    expect(coordinator).toEqual({ minimumTcb: { Milan: { fmc: 0, bl: 4, tee: 0, snp: 24, ucode: 200 } } })
  })

  test('a product is accepted only where every manifest with patch levels names it', () => {
    const { coordinator } = merge(withTcb({ Milan: {}, Genoa: { bl: 1 } }), withTcb({ Genoa: {}, Turin: {} }))
    expect(Object.keys(coordinator?.minimumTcb ?? {})).toEqual(['Genoa'])
    expect(merge(withTcb({ Milan: {} }), withTcb({ Turin: {} })).coordinator).toEqual({ minimumTcb: {} })
  })
})
