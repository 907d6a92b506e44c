import { expect, test } from 'vitest'
import { assertQuotePolicy, assertReportPolicy, createVerifier } from './index.ts'
import { createSimulator } from './simulator/index.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const verifier = createVerifier({ roots: [simulator.intelRoot, simulator.amdRoot] })
const reportData = new Uint8Array(64).fill(3)
const collateral = simulator.collateral()

test('this runs in a browser', () => {
  expect(navigator.userAgent).toContain('Chrome')
  expect('process' in globalThis && 'versions' in process && 'node' in process.versions).toBe(false)
})

test.each([4, 5] as const)('verifies a TDX quote of version %d with a cold and a warm cache', async (version) => {
  const quote = simulator.quote({ reportData, version })
  for (let round = 0; round < 2; round++) {
    const verified = await verifier.verifyQuote({ quote, collateral, at })
    assertQuotePolicy(verified, { reportData })
    expect(verified.tcb.status).toBe('UpToDate')
  }
})

test.each([2, 3, 5] as const)('verifies an SNP report of version %d', async (version) => {
  const report = simulator.report({ reportData, version })
  const verified = await verifier.verifyReport({ report, certificates: simulator.certificates(), at })
  assertReportPolicy(verified, { reportData, allowUncheckedAliases: version === 2 })
})

test('accepts AMD’s revocation list, and rejects one that is forged or lists a certificate', async () => {
  const certificates = simulator.certificates()
  const list = simulator.revocations()
  expect(await verifier.verifyRevocations({ certificates, list, at })).toMatchObject({ revoked: 0 })
  const forged = simulator.revocations({ faults: { wrongSigner: true } })
  await expect(verifier.verifyRevocations({ certificates, list: forged, at })).rejects.toMatchObject({
    code: 'crl_signature_invalid',
  })
  const revoking = simulator.revocations({ revoked: ['ask'] })
  await expect(verifier.verifyRevocations({ certificates, list: revoking, at })).rejects.toMatchObject({
    code: 'certificate_revoked',
  })
})

test.each([
  ['quoteWrongSigner', 'quote_signature_invalid'],
  ['qeReportWrongSigner', 'qe_report_signature_invalid'],
  ['pckForeignRoot', 'root_not_trusted'],
  ['pckCaNotCa', 'certificate_chain_invalid'],
])('%s is refused with %s', async (fault, code) => {
  const quote = simulator.quote({ reportData, faults: { [fault]: true } })
  await expect(verifier.verifyQuote({ quote, collateral, at })).rejects.toMatchObject({ code })
})

test('rejects a key that is not on the curve', async () => {
  const quote = new Uint8Array(simulator.quote({ reportData }))
  quote.fill(0xff, 48 + 584 + 4 + 64, 48 + 584 + 4 + 128)
  await expect(verifier.verifyQuote({ quote, collateral, at })).rejects.toMatchObject({ name: 'QuoteError' })
})
