import { expect, test } from 'vitest'
import * as query from './index.ts'

test('exports of @countersign/sdk/query', () => {
  expect(Object.keys(query).toSorted()).toMatchInlineSnapshot(`
    [
      "meQueryOptions",
      "proofQueryOptions",
      "serviceKeys",
      "signAndSendMutationOptions",
      "transactionsInfiniteQueryOptions",
      "vaultsQueryOptions",
      "walletQueryOptions",
    ]
  `)
})
