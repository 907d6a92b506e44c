import { join } from 'node:path'
import { createSimulator } from '@countersign/attestation/simulator'
import { fromHex, toHex } from '@countersign/protocol'
import { canonicalBytes } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { signedAt } from '../../../packages/verify/test/issues.ts'
import { withCode } from '../../../packages/verify/test/withCode.ts'
import { createFolder, honest } from '../test/folder.ts'
import { explain } from './explain.ts'

const simulator = createSimulator({ at: signedAt })
const reportData = new Uint8Array(64).fill(7)

async function explainFile(content: string | Uint8Array): Promise<string> {
  return explain(join(await createFolder({ file: content }), 'file'))
}

describe('explain', () => {
  test('says that it verifies nothing', async () => {
    expect(await explainFile(honest.bytes)).toMatch(/^This is only what the file says\./)
  })

  test('prints measurements, report data and flags of a quote, binary or hex', async () => {
    const mrtd = new Uint8Array(48).fill(0xa1)
    const tdAttributes = Uint8Array.of(1, 0, 0, 0x30, 0, 0, 0, 0x80)
    const quote = simulator.quote({ reportData, mrtd, tdAttributes })
    const text = await explainFile(quote)
    expect(text).toContain(toHex(mrtd))
    expect(text).toContain(toHex(reportData))
    for (const words of ['SEPT_VE_DISABLE: ', 'MIGRATABLE: ', 'PERFMON: ']) expect(text).toContain(words)
    expect(text).toMatch(/debug +YES/)
    expect(text).not.toContain('TPA')
    expect(text).toContain('Intel SGX PCK Certificate')
    expect(await explainFile(toHex(quote))).toBe(text)
    expect(await explainFile(`0x${toHex(quote).toUpperCase()}\n`)).toBe(text)
  })

  test('prints two more fields for a TDX 1.5 quote', async () => {
    const text = await explainFile(simulator.quote({ reportData, version: 5 }))
    for (const words of ['TD report 1.5', 'MRSERVICETD', 'TCB components now']) expect(text).toContain(words)
  })

  test('prints the TDX module of a quote and the platform of its PCK certificate', async () => {
    const teeTcbSvn = Uint8Array.from([7, 1, 3, ...new Array<number>(13).fill(0)])
    const text = await explainFile(simulator.quote({ reportData, teeTcbSvn }))
    expect(text).toMatch(/module +TDX_01, SVN 7\n/)
    expect(text).toMatch(/FMSPC +f0c06f000000\n/)
    expect(text).toMatch(/PCE id +0000\n/)
    expect(text).toMatch(/TCB components +\d+( \d+){15}\n/)
    expect(text).toMatch(/debug +no\n/)
    expect(text).toMatch(/MROWNER +all zero \(48 bytes\)\n/)
    teeTcbSvn[1] = 0
    expect(await explainFile(simulator.quote({ reportData, teeTcbSvn }))).toMatch(/module +TDX 1.0, SVN 7\n/)
  })

  test('prints a quote with unreadable certificates', async () => {
    const quote = simulator.quote({ reportData })
    quote.set(new TextEncoder().encode('?'), Buffer.from(quote).indexOf('-----BEGIN'))
    const text = await explainFile(quote)
    expect(text).toContain(toHex(reportData))
    expect(text).toMatch(/TDX QUOTE: PLATFORM\n {2}unreadable +malformed PEM/)
    expect(text).toMatch(/quoting enclave +product/)
  })

  test('prints measurement, policy and TCBs of a report, binary or hex', async () => {
    const measurement = new Uint8Array(48).fill(0xb2)
    const report = simulator.report({ reportData, measurement })
    const text = await explainFile(report)
    expect(text).toContain(toHex(measurement))
    expect(text).toMatch(/debug +no\n {2}other flags +SMT: .*\n +ALIAS_CHECK_COMPLETE: .*\n {2}policy +0x30000\n/)
    expect(text).toContain('VCEK')
    expect(await explainFile(toHex(report))).toBe(text)
  })

  test('points out that a report allows debugging', async () => {
    const text = await explainFile(simulator.report({ reportData, policy: 0xf0000n }))
    expect(text).toMatch(/debug +YES/)
    expect(text).toContain('MIGRATE_MA: ')
  })

  describe('the TCBs of a report', () => {
    const reportedTcb = { bootLoader: 4, tee: 1, snp: 24, microcode: 217 }

    test('are decoded in the processor’s layout', async () => {
      const text = await explainFile(simulator.report({ reportData, reportedTcb }))
      expect(text).toMatch(/processor +Milan \(family 25, model 1, stepping 1\)\n/)
      expect(text).toMatch(/reported TCB +04010000000018d9: boot loader 4, TEE 1, SNP 24, microcode 217\n/)
    })

    test('start with the FMC on Turin', async () => {
      const report = simulator.report({ reportData, cpuid: { family: 0x1a, model: 2, stepping: 1 } })
      report.set([1, 2, 3, 4, 0, 0, 0, 5], 0x180)
      expect(await explainFile(report)).toMatch(/0102030400000005: FMC 1, boot loader 2, TEE 3, SNP 4, microcode 5\n/)
    })

    test('are decoded in every layout if the report names no processor', async () => {
      const report = simulator.report({ reportData, version: 2, reportedTcb })
      expect(await explainFile(report)).toMatch(/04010000000018d9: boot loader 4, .* \(as Milan or Genoa\)\n/)
      report.set([4, 0, 0, 0, 0, 0, 0, 9], 0x180)
      expect(await explainFile(report)).toMatch(/\(as Milan or Genoa\); FMC 4, boot loader 0, .* \(as Turin\)\n/)
    })

    test('are printed as hex if no known processor writes them', async () => {
      const report = simulator.report({ reportData, reportedTcb })
      report[0x183] = 1
      expect(await explainFile(report)).toMatch(/04010001000018d9: not as Milan writes it\n/)
      const nameless = simulator.report({ reportData, version: 2, reportedTcb })
      nameless.set([1, 1, 1, 1, 1, 1, 1, 1], 0x180)
      expect(await explainFile(nameless)).toContain('0101010101010101: not a known product’s layout')
    })
  })

  test('prints transaction, times, configuration and evidence of a receipt', async () => {
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

  test('prints a receipt with invalid evidence', async () => {
    const { signer } = honest.receipt
    const receipt = { ...honest.receipt, signer: { ...signer, quoteHex: 'ab' } }
    const text = await explainFile(canonicalBytes(receipt))
    expect(text).toMatch(/TDX QUOTE\n {2}unreadable +malformed quote/)
    expect(text).toContain(honest.receipt.transaction.txHash)
  })

  test('prints the subject and validity of collateral', async () => {
    const text = await explainFile(honest.collateral)
    expect(text).toContain(honest.receipt.signer.collateral)
    expect(text).toMatch(/TCB INFO\n {2}for FMSPC +f0c06f000000\n/)
    expect(text).toMatch(/QUOTING ENCLAVE IDENTITY\n {2}issued +\S+Z\n {2}next update +2026-03-30T12:00:00Z\n/)
    expect(text).toMatch(/levels, highest first +UpToDate, as of /)
    for (const [list, revoked] of [
      ['ROOT', 0],
      ['PCK', 1],
    ]) {
      expect(text).toMatch(
        new RegExp(
          `${list} REVOCATION LIST\\n {2}issued +\\S+Z\\n {2}next update +\\S+Z\\n {2}certificates revoked +${revoked}\\n`,
        ),
      )
    }
  })

  test('accepts collateral with a trailing line feed from an editor', async () => {
    expect(await explainFile(Buffer.concat([honest.collateral, Buffer.from('\n')]))).toBe(
      await explainFile(honest.collateral),
    )
  })

  test('prints collateral with an unreadable part', async () => {
    const collateral = simulator.collateral({ faults: { pckCrlEmpty: true } })
    const text = await explainFile(JSON.stringify({ ...collateral, tcb_info_issuer_chain: 'none' }))
    expect(text).toMatch(/unreadable +malformed revocation list/)
    expect(text).toMatch(/TCB info\n {2}unreadable +malformed PEM/)
    expect(text).toContain('Intel SGX PCK Platform CA')
  })

  test('removes terminal control characters', async () => {
    const { signer } = honest.receipt
    const config = { ...signer.config, rootSecret: '\u001b[2J\nVERIFIED\u202e' }
    const receipt = { ...honest.receipt, signer: { ...signer, config } }
    expect(await explainFile(canonicalBytes(receipt))).toContain('\u{fffd}[2J\u{fffd}VERIFIED\u{fffd}')
  })

  test.each<[string, string | Uint8Array, string]>([
    ['text', 'hello', 'evidence_unrecognised'],
    ['broken JSON', '{"version":', 'evidence_unrecognised'],
    ['JSON of something else', '{"a":1}', 'evidence_unrecognised'],
    ['a receipt of another version', '{"version":"countersign-attestation/3"}', 'receipt_version_unsupported'],
    ['a manifest', '{"version":"countersign-manifest/1"}', 'evidence_unrecognised'],
    ['a certificate', '-----BEGIN CERTIFICATE-----\n', 'evidence_unrecognised'],
    ['base64', Buffer.from(honest.receipt.signer.quoteHex, 'hex').toString('base64'), 'evidence_unrecognised'],
    ['a file that is too large', new Uint8Array(8_388_610).fill(4), 'evidence_unrecognised'],
    ['a receipt that was re-saved', JSON.stringify(honest.receipt, null, 2), 'receipt_not_canonical'],
    ['collateral with a member less', '{"tcb_info":"{}"}', 'collateral_malformed'],
    ['half a quote', fromHex(honest.receipt.signer.quoteHex).subarray(0, 700), 'quote_malformed'],
    ['a report of another version', new Uint8Array(1184), 'report_unsupported'],
    ['an empty file', '', 'file_unreadable'],
  ])('rejects %s', async (_, content, code) => {
    await expect(explainFile(content)).rejects.toThrow(withCode(code))
  })
})
