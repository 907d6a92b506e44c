import { expect, test } from 'vitest'
import * as testing from './index.ts'

test('exports of @countersign/sdk/testing', () => {
  expect(Object.keys(testing).toSorted()).toMatchInlineSnapshot(`
    [
      "createTestPasskeys",
      "createTestService",
    ]
  `)
})
