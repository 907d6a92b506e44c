import { expect, test } from 'vitest'
import * as service from './index.ts'

test('exports', () => {
  expect(Object.keys(service).sort()).toMatchInlineSnapshot(`
    [
      "ConfigError",
      "MAX_SESSION_S",
      "MOCK",
      "MOCK_SENTENCE",
      "PRODUCTION_FIX",
      "SILICON_HEADER",
      "assertWritable",
      "closeServer",
      "collectFaults",
      "createFolder",
      "createLog",
      "createShutdown",
      "createTrustedProxies",
      "describeFault",
      "drainServer",
      "fileFix",
      "findUnmeasured",
      "parseArguments",
      "readBoolean",
      "readCauseCode",
      "readCode",
      "readInteger",
      "readList",
      "readMode",
      "readSecret",
      "readSettings",
      "readUrl",
      "refuseMisspelt",
      "refuseRealChains",
      "runProgram",
      "runService",
      "settingNames",
      "syncFolder",
      "testChainIds",
      "trackAnswers",
      "writeNewFile",
    ]
  `)
})
