import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createVerifier } from '../createVerifier.ts'
import type { QuoteErrorCode } from '../errors.ts'
import { vendorRoots } from '../roots.ts'
import {
  createSimulator,
  type SimulatedCertificateFaults,
  type SimulatedCertificateOptions,
  type SimulatedReportFaults,
  type SimulatedReportOptions,
} from '../simulator/index.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const reportData = Uint8Array.from({ length: 64 }, (_, index) => index)

function verify(
  reportOptions: Partial<SimulatedReportOptions> = {},
  certificateOptions: SimulatedCertificateOptions = {},
  { when = at, roots = [simulator.amdRoot] } = {},
) {
  return createVerifier({ roots }).verifyReport({
    report: simulator.report({ reportData, ...reportOptions }),
    certificates: simulator.certificates(certificateOptions),
    at: when,
  })
}

describe('a genuine report', () => {
  test.each([2, 3, 5] as const)('verifies version %d and returns its measurement', async (version) => {
    const measurement = new Uint8Array(48).fill(9)
    const verified = await verify({ version, measurement, vmpl: 1 })
    expect(verified).toMatchObject({ root: simulator.amdRoot, product: 'Milan', productName: 'Milan-B0' })
    expect(verified.body).toMatchObject({ version, vmpl: 1, signingKey: 'VCEK' })
    expect(toHex(verified.body.measurement)).toBe('09'.repeat(48))
    expect(verified.body.reportData).toEqual(reportData)
    expect(verified.tcb.reported).toEqual(verified.tcb.launch)
  })

  test('accepts a VLEK for any chip', async () => {
    const verified = await verify({ signingKey: 'vlek' }, { signingKey: 'vlek' })
    expect(verified.body.signingKey).toBe('VLEK')
  })

  test.each([
    ['Genoa', 'vcek', 'Genoa-B0'],
    ['Genoa', 'vlek', 'Genoa'],
    ['Turin', 'vcek', 'Turin-B0'],
    ['Turin', 'vlek', 'Turin'],
  ] as const)('verifies a %s with a %s', async (product, signingKey, productName) => {
    const tcb = { fmc: product === 'Turin' ? 1 : 0, bootLoader: 2, tee: 3, snp: 4, microcode: 5 }
    const roots = [simulator.amdRootOf(product)]
    const verified = await verify({ product, signingKey, reportedTcb: tcb }, { product, signingKey, tcb }, { roots })
    expect(verified).toMatchObject({ product, productName, root: { name: `ARK-${product}` } })
    expect(verified.tcb.reported).toEqual({ fmc: tcb.fmc, bl: 2, tee: 3, snp: 4, ucode: 5 })
  })

  test('reports debug, migration and undefined policy bits', async () => {
    expect((await verify({ policy: 0x30000n })).flags).toMatchObject({ debug: false, smt: true, reservedBits: false })
    expect((await verify({ policy: 0xb0000n })).flags.debug).toBe(true)
    expect((await verify({ policy: 0x70000n })).flags.migrationAgent).toBe(true)
    expect((await verify({ policy: 0x10000n })).flags.reservedBits).toBe(true)
    expect((await verify({ policy: 0x4030000n })).flags.reservedBits).toBe(true)
  })

  test('the vendor roots do not verify simulated silicon', async () => {
    await expect(verify({}, {}, { roots: [...vendorRoots] })).rejects.toMatchObject({ code: 'root_not_trusted' })
  })
})

const reportFaults: Record<keyof SimulatedReportFaults, QuoteErrorCode> = {
  reportDataFlipped: 'report_signature_invalid',
  wrongSigner: 'report_signature_invalid',
  reservedByteSet: 'report_malformed',
  tailByteSet: 'report_malformed',
  signaturePaddingSet: 'report_malformed',
  wrongSignatureAlgorithm: 'report_unsupported',
}

const certificateFaults: Record<keyof SimulatedCertificateFaults, QuoteErrorCode> = {
  otherTcb: 'report_tcb_mismatch',
  otherChip: 'report_chip_mismatch',
  ekExpired: 'certificate_not_in_date',
  ekWrongIssuer: 'certificate_chain_invalid',
  ekWrongName: 'certificate_chain_invalid',
  askNotCa: 'certificate_chain_invalid',
  askWrongIssuer: 'certificate_chain_invalid',
  foreignArk: 'root_not_trusted',
}

describe('a report that is not genuine', () => {
  test.each(Object.entries(reportFaults))('%s is refused with %s', async (fault, code) => {
    await expect(verify({ faults: { [fault]: true } })).rejects.toMatchObject({ name: 'QuoteError', code })
  })

  test.each(Object.entries(certificateFaults))('%s is refused with %s', async (fault, code) => {
    await expect(verify({}, { faults: { [fault]: true } })).rejects.toMatchObject({ name: 'QuoteError', code })
  })

  test('rejects the key of another chip or TCB', async () => {
    await expect(verify({ chipId: new Uint8Array(64).fill(3) })).rejects.toMatchObject({
      code: 'report_signature_invalid',
    })
    await expect(verify({}, { chipId: new Uint8Array(64).fill(3) })).rejects.toMatchObject({
      code: 'report_signature_invalid',
    })
  })

  test('rejects a VLEK for a VCEK, and a VCEK for a VLEK', async () => {
    await expect(verify({}, { signingKey: 'vlek' })).rejects.toMatchObject({ code: 'certificate_chain_invalid' })
    await expect(verify({ signingKey: 'vlek' })).rejects.toMatchObject({ code: 'certificate_chain_invalid' })
  })

  test('rejects a processor of another product', async () => {
    const cpuid = { family: 0x1a, model: 1, stepping: 1 }
    await expect(verify({ version: 3, cpuid })).rejects.toMatchObject({ code: 'report_chip_mismatch' })
  })

  test('rejects the chain of another product', async () => {
    const roots = (['Milan', 'Genoa', 'Turin'] as const).map((product) => simulator.amdRootOf(product))
    await expect(verify({ product: 'Turin' }, { product: 'Genoa' }, { roots })).rejects.toMatchObject({
      code: 'report_signature_invalid',
    })
    const cpuid = { family: 0x19, model: 1, stepping: 1 }
    await expect(verify({ product: 'Genoa', cpuid }, { product: 'Genoa' }, { roots })).rejects.toMatchObject({
      code: 'report_chip_mismatch',
    })
  })

  test.each([0, 1, 4, 6, 0xffffffff])('rejects version %d', async (version) => {
    const report = new Uint8Array(simulator.report({ reportData }))
    new DataView(report.buffer).setUint32(0, version, true)
    const certificates = simulator.certificates()
    const verifier = createVerifier({ roots: [simulator.amdRoot] })
    await expect(verifier.verifyReport({ report, certificates, at })).rejects.toMatchObject({
      code: 'report_unsupported',
    })
  })
})
