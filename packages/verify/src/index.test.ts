import { expect, test } from 'vitest'
import * as exports from './index.ts'

test('exports', () => {
  expect(Object.keys(exports).toSorted()).toMatchInlineSnapshot(`
    [
      "MAX_COLLATERAL_BYTES",
      "MEASUREMENT_FORM",
      "MINIMUM_TCB_FORM",
      "PLATFORM_FORM",
      "SUBJECT_TITLE",
      "VerifierError",
      "adviseOn",
      "assertManifest",
      "chooseReceipt",
      "compareClaims",
      "createFetchBytes",
      "describeError",
      "describeStep",
      "describeVerdict",
      "emptyManifest",
      "findLies",
      "findManifestFaults",
      "getProof",
      "isMockStep",
      "isSimulated",
      "normaliseHex",
      "orderGateways",
      "parseHttpUrl",
      "parseManifest",
      "parseMeasurementText",
      "parseMinimumTcbTexts",
      "parsePlatformText",
      "recogniseSubject",
      "releaseManifest",
      "stepGroups",
      "toMeasurementText",
      "toMinimumTcbTexts",
      "toPlatformText",
      "toPrintable",
      "toPrintableJson",
      "trimWhiteSpace",
      "verdictWords",
      "verify",
      "withSource",
    ]
  `)
})
