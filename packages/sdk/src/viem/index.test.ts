import { expect, test } from 'vitest'
import * as viem from './index.ts'

test('exports of @countersign/sdk/viem', () => {
  expect(Object.keys(viem).toSorted()).toMatchInlineSnapshot(`
    [
      "toServiceAccount",
    ]
  `)
})
