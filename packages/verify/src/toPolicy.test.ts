import { describe, expect, test } from 'vitest'
import { releaseManifest } from './releaseManifest.ts'
import { toPolicy } from './toPolicy.ts'

const withNumber = (minimumTcbEvaluationDataNumber: number) => ({
  ...releaseManifest,
  enclave: { ...releaseManifest.enclave, minimumTcbEvaluationDataNumber },
})
const merge = (...manifests: (typeof releaseManifest)[]) => toPolicy({ statuses: [] }, manifests)

describe('the policy', () => {
  test('without floors in a manifest there are none', () => {
    expect(merge(releaseManifest)).toEqual({ signer: { statuses: ['UpToDate'] } })
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
})
