import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCompleteProofs } from '../../test/store/finalProofs.ts'
import { NOW, startTestStore, type TestStore } from '../../test/store/store.ts'
import { createPinningStore } from '../store/pinning.ts'
import { createRebuildReceipt, type RebuildReceipt } from './assembleReceipt.ts'

describe('the receipt that rows give', () => {
  let subject: TestStore
  let rebuild: RebuildReceipt
  beforeAll(async () => {
    subject = await startTestStore()
    rebuild = createRebuildReceipt(createPinningStore({ db: subject.database.db, jobs: subject.jobs }))
  })
  afterAll(() => subject.stop())

  test('is the published one, or is told from it', async () => {
    const same = await createCompleteProofs(subject, { count: 3, now: NOW, isAssembled: true })
    const [other] = await createCompleteProofs(subject, { count: 1, now: NOW })
    expect(await Promise.all(same.map(({ slug }) => rebuild(slug)))).toEqual(
      same.map(({ cid, bytes }) => ({ cid, bytes })),
    )
    const rebuilt = await rebuild(other?.slug ?? '')
    expect(rebuilt?.cid).toMatch(/^bafkrei/)
    expect(rebuilt?.cid).not.toBe(other?.cid)
  })

  test('of no proof is none', async () => {
    expect(await rebuild('AAAAAAAAAAAAAAAAAAAAAA')).toBeUndefined()
  })
})
