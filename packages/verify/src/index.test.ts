import { expect, test } from 'vitest'
import * as exports from './index.ts'

test('exports', () => {
  expect(Object.keys(exports).toSorted()).toMatchInlineSnapshot(`
    [
      "MAX_COLLATERAL_BYTES",
      "MEASUREMENT_FORM",
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
      "parsePlatformText",
      "recogniseSubject",
      "releaseManifest",
      "stepGroups",
      "toMeasurementText",
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
