import { expect, test } from 'vitest'
import { describeRetention } from './explain.ts'

test('an operator reads what is there, what went, its share, and how to get the space back', () => {
  const text = describeRetention({
    held: { receipts: 10, bytes: 2 ** 20 },
    dropped: { receipts: 30, bytes: 3 * 2 ** 20 },
    databaseBytes: 5 * 2 ** 30,
  })
  expect(text).toMatch(/takes 5\.00 GiB/)
  expect(text).toMatch(/in it: 10, 1\.0 MiB/)
  expect(text).toMatch(/IPFS alone: 30, which took 3\.0 MiB/)
  expect(text).toMatch(/75 %.*VACUUM FULL/)
})

test('of a database that keeps all receipts no saving is told', () => {
  const text = describeRetention({
    held: { receipts: 0, bytes: 0 },
    dropped: { receipts: 0, bytes: 0 },
    databaseBytes: 1,
  })
  expect(text).not.toContain('%')
})
