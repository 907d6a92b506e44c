import { expect, test } from 'vitest'
import * as evidence from './index.ts'

test('exports', () => {
  expect(Object.keys(evidence).sort()).toMatchInlineSnapshot(`
    [
      "EvidenceError",
      "createConfigfsQuoteSource",
      "createConfigfsReportSource",
      "createDstackQuoteSource",
      "createSimulatedQuoteSource",
      "createSimulatedReportSource",
      "getDstackKey",
      "parseCertTable",
    ]
  `)
})
