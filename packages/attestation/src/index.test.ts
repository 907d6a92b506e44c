import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as attestation from './index.ts'

test('exports', () => {
  expect(Object.keys(attestation).sort()).toMatchInlineSnapshot(`
    [
      "PolicyError",
      "QuoteError",
      "SNP_REPORT_BYTES",
      "arkGenoa",
      "arkMilan",
      "arkTurin",
      "assertCollateral",
      "assertLaunch",
      "assertQuotePolicy",
      "assertReportChip",
      "assertReportPolicy",
      "assertReportState",
      "codeEvents",
      "codeRegisters",
      "createVerifier",
      "describeCollateral",
      "findOpenEvents",
      "findOpenRegisters",
      "findPlatform",
      "intelSgxRootCa",
      "isMeasuredAs",
      "isTdPlatform",
      "parseCollateral",
      "parsePckPlatform",
      "parsePem",
      "parseQuote",
      "parseReport",
      "parseSnpTcb",
      "quotePolicyMembers",
      "readReportFlags",
      "readSnpMeasurement",
      "readTdFlags",
      "readTdxModule",
      "snpProducts",
      "snpTcbParts",
      "tcbStatuses",
      "toSnpProduct",
      "toTdMeasurement",
      "vendorRoots",
      "verifyEventLog",
    ]
  `)
})

test('the package runs in a browser: no import from Node, no clock, no network', async () => {
  const folder = import.meta.dirname
  const files = (await readdir(folder, { recursive: true })).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  expect(files.length).toBeGreaterThan(20)
  for (const name of files) {
    const source = await readFile(join(folder, name), 'utf8')
    expect(source.match(/from 'node:|\bprocess\.|\bBuffer\.|Date\.now\(|new Date\(\)\.|\bfetch\(/), name).toBeNull()
  }
})

test('production code never imports the simulator', async () => {
  const folder = import.meta.dirname
  const files = (await readdir(folder, { recursive: true })).filter((name) =>
    /^(?!simulator).*(?<!\.test)\.ts$/.test(name),
  )
  for (const name of files) expect(await readFile(join(folder, name), 'utf8'), name).not.toContain('simulator/')
})
