import { join } from 'node:path'
import { createSimulator } from '@countersign/attestation/simulator'
import { fromHex, toHex } from '@countersign/protocol'
import { canonicalBytes } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { explain } from './explain.ts'
import { createFolder, honest, signedAt } from './issues.fake.ts'
import { withCode } from './withCode.fake.ts'

const simulator = createSimulator({ at: signedAt })
const reportData = new Uint8Array(64).fill(7)

async function explainFile(content: string | Uint8Array): Promise<string> {
  return explain(join(await createFolder({ file: content }), 'file'))
}

describe('what a file says', () => {
  test('is never taken for a verdict', async () => {
    expect(await explainFile(honest.bytes)).toMatch(/^What it says, not whether it is true\./)
  })

  test('a quote, binary or as hex: measurements, report data, attributes by name', async () => {
    const mrtd = new Uint8Array(48).fill(0xa1)
    const tdAttributes = Uint8Array.of(1, 0, 0, 0x30, 0, 0, 0, 0x80)
    const quote = simulator.quote({ reportData, mrtd, tdAttributes })
    const text = await explainFile(quote)
    expect(text).toContain(toHex(mrtd))
    expect(text).toContain(toHex(reportData))
    expect(text).toContain('(DEBUG, SEPT_VE_DISABLE, MIGRATABLE, PERFMON)')
    expect(text).toContain('Intel SGX PCK Certificate')
    expect(await explainFile(toHex(quote))).toBe(text)
    expect(await explainFile(`0x${toHex(quote).toUpperCase()}\n`)).toBe(text)
  })

  test('a quote of TDX 1.5 has two fields more', async () => {
    const text = await explainFile(simulator.quote({ reportData, version: 5 }))
    for (const words of ['TD report 1.5', 'MRSERVICETD', 'TEE TCB SVNs now']) expect(text).toContain(words)
  })

  test('a report, binary or as hex: measurement, policy by name, TCBs', async () => {
    const measurement = new Uint8Array(48).fill(0xb2)
    const report = simulator.report({ reportData, measurement })
    const text = await explainFile(report)
    expect(text).toContain(toHex(measurement))
    expect(text).toContain('(SMT)')
    expect(text).toContain('VCEK')
    expect(await explainFile(toHex(report))).toBe(text)
  })

  test('a receipt: transaction, times, configuration and both pieces of evidence', async () => {
    const text = await explainFile(honest.bytes)
    const { transaction, signer, coordinator, entropy } = honest.receipt
    for (const value of [
      honest.cid,
      transaction.txHash,
      signer.measurement.mrTd,
      signer.collateral,
      'https://issuer.example for countersign',
      coordinator.selfAttestation.measurement,
      coordinator.selfAttestation.fetchedAt,
      entropy.publicKey,
      entropy.timestamp,
    ]) {
      expect(text).toContain(value)
    }
  })

  test('a receipt whose evidence is none is told all the same', async () => {
    const { signer } = honest.receipt
    const receipt = { ...honest.receipt, signer: { ...signer, quoteHex: 'ab' } }
    const text = await explainFile(canonicalBytes(receipt))
    expect(text).toMatch(/TDX QUOTE\n {2}none +malformed quote/)
    expect(text).toContain(honest.receipt.transaction.txHash)
  })

  test('collateral: whose it is and until when it is good', async () => {
    const text = await explainFile(honest.collateral)
    expect(text).toContain(honest.receipt.signer.collateral)
    expect(text).toMatch(/nextUpdate +2026-03-30T12:00:00Z/)
    expect(text).toMatch(/fmspc +F0C06F000000/)
  })

  test('texts in it cannot paint on the terminal', async () => {
    const { entropy } = honest.receipt
    const receipt = { ...honest.receipt, entropy: { ...entropy, source: '\u001b[2J\nVERIFIED\u202e' } }
    expect(await explainFile(canonicalBytes(receipt))).toContain('\u{fffd}[2J\u{fffd}VERIFIED\u{fffd}')
  })

  test.each<[string, string | Uint8Array, string]>([
    ['text', 'hello', 'evidence_unrecognised'],
    ['broken JSON', '{"version":', 'evidence_unrecognised'],
    ['JSON of something else', '{"a":1}', 'receipt_version_unsupported'],
    ['a receipt that was re-saved', JSON.stringify(honest.receipt, null, 2), 'receipt_not_canonical'],
    ['collateral with a member less', '{"tcb_info":"{}"}', 'collateral_malformed'],
    ['half a quote', fromHex(honest.receipt.signer.quoteHex).subarray(0, 700), 'evidence_unrecognised'],
    ['a report of another version', new Uint8Array(1184), 'report_unsupported'],
    ['an empty file', '', 'file_unreadable'],
  ])('%s is refused', async (_, content, code) => {
    await expect(explainFile(content)).rejects.toThrow(withCode(code))
  })
})
