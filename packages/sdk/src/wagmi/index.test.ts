import { expect, test } from 'vitest'
import * as wagmi from './index.ts'

test('exports of @countersign/sdk/wagmi', () => {
  expect(Object.keys(wagmi).toSorted()).toMatchInlineSnapshot(`
    [
      "serviceConnector",
    ]
  `)
})
