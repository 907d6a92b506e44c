import { expect, test } from 'vitest'
import { readImports } from '../../../scripts/readImports.ts'

test('the enclave does not load parts of packages that only others need', () => {
  const imports = readImports(`${import.meta.dirname}/../../..`).filter(({ isType }) => !isType)
  const loaded = new Set(['services/enclave/src/main.ts', 'services/enclave/src/keys/keyWorkerThread.ts'])
  for (const file of loaded) for (const { from, to } of imports) if (from === file) loaded.add(to)
  const whole = [...loaded].filter((path) =>
    /^packages\/(?:attestation|evidence|log|policy|protocol)\/src\/index\.ts$/.test(path),
  )
  expect(whole).toEqual([])
})
