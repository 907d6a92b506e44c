import { readFileSync } from 'node:fs'
import type { TcbStatus } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { vendorRoots } from './roots.ts'
import type { ParsedReport } from './snp/parseReport.ts'
import { readReportFlags } from './snp/verifyReport.ts'
import { evaluateTcb } from './tdx/evaluateTcb.ts'
import { readTdFlags, type TdReport } from './tdx/parseQuote.ts'
import type { TcbInfo } from './tdx/tcbInfo.ts'

/* The tables of spec/evidence.md say what the code does. */

const page = readFileSync(new URL('../spec/evidence.md', import.meta.url), 'utf8')
/** The rows of the first table below a heading or line, as the texts of their cells. */
function readTable(before: string): string[][] {
  const [, below = ''] = page.split(before)
  const [table = ''] = /(?:^\|.*\n)+/m.exec(below) ?? []
  const rows = table.trim().split('\n').slice(2)
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.replaceAll('`', '').trim()),
  )
}

test('section 2: the roots are those that the code trusts', () => {
  const stated = readTable('## 2. Roots').map(([name, sha256]) => [name, sha256])
  const label = { intel: 'Intel', amd: 'AMD' }
  expect(stated).toEqual(
    vendorRoots.map(({ vendor, name, certificateSha256 }) => [`${label[vendor]} ${name}`, certificateSha256]),
  )
})

describe('section 6.4: the status follows from platform, module and QE level', () => {
  const zeros = (length: number) => new Uint8Array(length)
  const parts = ['UpToDate', 'OutOfDate', 'Revoked']
  const toLevels = (status: string) => [{ isvSvn: 0, status, advisoryIds: [] }]

  function evaluate(platform: string, module: string, qe: string): TcbStatus | 'fails' {
    const identity = { mrSigner: zeros(48), attributes: zeros(8) }
    const components = Array<number>(16).fill(0)
    const level = { sgxComponents: components, tdxComponents: components, pceSvn: 0, advisoryIds: [], tcbDate: 0 }
    const tcbInfo = {
      tdxModule: identity,
      tdxModuleIdentities: [{ ...identity, id: 'TDX_01', tcbLevels: toLevels(module) }],
      tcbLevels: [{ ...level, status: platform }],
    } as unknown as TcbInfo
    const teeTcbSvn = Uint8Array.from({ length: 16 }, (_, index) => (index === 1 ? 1 : 0))
    const body = { teeTcbSvn, mrSignerSeam: zeros(48), seamAttributes: zeros(8) } as unknown as TdReport
    const subject = { body, platform: { components, pceSvn: 0 } as never, qeIsvSvn: 0 }
    try {
      return evaluateTcb(subject, tcbInfo, toLevels(qe)).status
    } catch {
      return 'fails'
    }
  }

  const rows = readTable('The status is:')
  test('the table has every status of a platform', () => {
    expect(rows).toHaveLength(7)
  })

  test.each(rows)('%s', (platform = '', bothUpToDate, oneOutOfDate) => {
    for (const module of parts) {
      for (const qe of parts) {
        const isRevoked = module === 'Revoked' || qe === 'Revoked'
        const expected = module === 'UpToDate' && qe === 'UpToDate' ? bothUpToDate : oneOutOfDate
        expect([module, qe, evaluate(platform, module, qe)]).toEqual([module, qe, isRevoked ? 'fails' : expected])
      }
    }
  })
})

describe('sections 7 and 9.6: every bit', () => {
  const bits = Array.from({ length: 64 }, (_, bit) => bit)
  const toBytes = (value: bigint) => {
    const bytes = new Uint8Array(8)
    new DataView(bytes.buffer).setBigUint64(0, value, true)
    return bytes
  }
  const isUndefinedInTd = (tdAttributes: bigint, xfam: bigint) =>
    readTdFlags({ tdAttributes: toBytes(tdAttributes), xfam: toBytes(xfam) } as TdReport).reservedBits

  test('of TDATTRIBUTES is undefined, but for eight', () => {
    const defined = bits.filter((bit) => !isUndefinedInTd(1n << BigInt(bit), 3n))
    expect(defined).toEqual([0, 27, 28, 29, 30, 31, 62, 63])
  })

  test('of XFAM is undefined outside 0x6dbe7, and bits 0 and 1 must be set', () => {
    const mask = bits.filter((bit) => !isUndefinedInTd(0n, 3n | (1n << BigInt(bit))))
    expect(mask.reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n)).toBe(0x6dbe7n)
    expect([0n, 1n, 2n].map((xfam) => isUndefinedInTd(0n, xfam))).toEqual([true, true, true])
  })

  test('of a guest policy is undefined from 26 on, and bit 17 must be set', () => {
    const isUndefined = (policy: bigint) =>
      readReportFlags({ policy, platformInfo: 0n, version: 3 } as ParsedReport).reservedBits
    expect(bits.filter((bit) => isUndefined((1n << 17n) | (1n << BigInt(bit))))).toEqual(bits.slice(26))
    expect(isUndefined(0n)).toBe(true)
  })
})
