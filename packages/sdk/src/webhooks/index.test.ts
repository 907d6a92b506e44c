import { expect, test } from 'vitest'
import * as webhooks from './index.ts'

test('exports of @countersign/sdk/webhooks', () => {
  expect(Object.keys(webhooks).toSorted()).toMatchInlineSnapshot(`
    [
      "ServiceError",
      "verifyWebhook",
    ]
  `)
})
