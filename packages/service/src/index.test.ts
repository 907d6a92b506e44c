import { expect, test } from 'vitest'
import * as service from './index.ts'

test('exports', () => {
  expect(Object.keys(service).sort()).toMatchInlineSnapshot(`
    [
      "ConfigError",
      "createLog",
      "createShutdown",
      "findUnmeasured",
      "parseArguments",
      "readBoolean",
      "readInteger",
      "readList",
      "readSecret",
      "readSettings",
      "readUrl",
      "refuseMisspelt",
      "runProgram",
      "runService",
      "settingNames",
    ]
  `)
})
