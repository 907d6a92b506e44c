import { expect, test } from 'vitest'
import { describeRetention } from './explain.ts'

test('shows stored and dropped receipts, the saved share, and how to reclaim the space', () => {
  const text = describeRetention({
    held: { receipts: 10, bytes: 2 ** 20 },
    dropped: { receipts: 30, bytes: 3 * 2 ** 20 },
    databaseBytes: 5 * 2 ** 30,
  })
  expect(text).toMatch(/uses 5\.00 GiB/)
  expect(text).toMatch(/in the database: 10, 1\.0 MiB/)
  expect(text).toMatch(/only on IPFS: 30, which used 3\.0 MiB/)
  expect(text).toMatch(/75 %.*VACUUM FULL/)
})

test('shows no saving if no receipt was dropped', () => {
  const text = describeRetention({
    held: { receipts: 0, bytes: 0 },
    dropped: { receipts: 0, bytes: 0 },
    databaseBytes: 1,
  })
  expect(text).not.toContain('%')
})
