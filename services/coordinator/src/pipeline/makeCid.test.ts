import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCompleteProofs } from '../store/finalProofs.fake.ts'
import { createPinningStore } from '../store/pinning.ts'
import { NOW, startTestStore, type TestStore } from '../store/store.fake.ts'
import { createMakeCid, type MakeCid } from './makeCid.ts'

describe('the receipt that rows give', () => {
  let subject: TestStore
  let makeCid: MakeCid
  beforeAll(async () => {
    subject = await startTestStore()
    makeCid = createMakeCid(createPinningStore({ db: subject.database.db, jobs: subject.jobs }))
  })
  afterAll(() => subject.stop())

  test('is the published one, or is told from it', async () => {
    const same = await createCompleteProofs(subject, { count: 3, now: NOW, isAssembled: true })
    const [other] = await createCompleteProofs(subject, { count: 1, now: NOW })
    expect(await Promise.all(same.map(({ slug }) => makeCid(slug)))).toEqual(same.map(({ cid }) => cid))
    const made = await makeCid(other?.slug ?? '')
    expect(made).toMatch(/^bafkrei/)
    expect(made).not.toBe(other?.cid)
  })

  test('of no proof is none', async () => {
    expect(await makeCid('AAAAAAAAAAAAAAAAAAAAAA')).toBeUndefined()
  })
})
