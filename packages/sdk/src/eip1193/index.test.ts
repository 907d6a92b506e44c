import { expect, test } from 'vitest'
import * as eip1193 from './index.ts'

test('exports of @countersign/sdk/eip1193', () => {
  expect(Object.keys(eip1193).toSorted()).toMatchInlineSnapshot(`
    [
      "Eip1193Error",
      "announceProvider",
      "createEip1193Provider",
    ]
  `)
})
