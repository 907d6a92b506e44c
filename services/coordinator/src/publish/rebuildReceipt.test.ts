import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCompleteProofs } from '../../test/store/finalProofs.ts'
import { NOW, startTestStore, type TestStore } from '../../test/store/store.ts'
import { createPinningStore } from '../store/pinning.ts'
import { createRebuildReceipt, type RebuildReceipt } from './assembleReceipt.ts'

describe('createRebuildReceipt', () => {
  let subject: TestStore
  let rebuild: RebuildReceipt
  beforeAll(async () => {
    subject = await startTestStore()
    rebuild = createRebuildReceipt(createPinningStore({ db: subject.database.db, jobs: subject.jobs }))
  })
  afterAll(() => subject.stop())

  test('rebuilds the published receipt, or a different one that can be detected', async () => {
    const same = await createCompleteProofs(subject, { count: 3, now: NOW, isAssembled: true })
    const [other] = await createCompleteProofs(subject, { count: 1, now: NOW })
    expect(await Promise.all(same.map(({ slug }) => rebuild(slug)))).toEqual(
      same.map(({ cid, bytes }) => ({ cid, bytes })),
    )
    const rebuilt = await rebuild(other?.slug ?? '')
    expect(rebuilt?.cid).toMatch(/^bafkrei/)
    expect(rebuilt?.cid).not.toBe(other?.cid)
  })

  test('returns undefined for an unknown proof', async () => {
    expect(await rebuild('AAAAAAAAAAAAAAAAAAAAAA')).toBeUndefined()
  })
})
