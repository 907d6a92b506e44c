import { expect, test } from 'vitest'
import * as evidence from './index.ts'

test('exports', () => {
  expect(Object.keys(evidence).sort()).toMatchInlineSnapshot(`
    [
      "EvidenceError",
      "VendorError",
      "createConfigfsQuoteSource",
      "createConfigfsReportSource",
      "createDstackQuoteSource",
      "createKdsClient",
      "createPcsClient",
      "createPlatformReader",
      "createSimulatedQuoteSource",
      "createSimulatedReportSource",
      "getDstackKey",
      "parseCertTable",
      "readPemBundle",
      "readPlatform",
    ]
  `)
})
