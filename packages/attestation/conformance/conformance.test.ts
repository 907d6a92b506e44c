import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parsePem } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCases } from './runCases.ts'

const FIXTURES = join(import.meta.dirname, '../../../../shared/fixtures')

if (existsSync(FIXTURES)) {
  test('gives the expected result for every case of the evidence fixtures', async () => {
    const outcomes = await runCases(FIXTURES)
    expect(outcomes.length).toBeGreaterThanOrEqual(50)
    expect(outcomes.filter(({ faults }) => faults.length > 0)).toEqual([])
  })
} else {
  console.log('skipped the evidence fixtures: the folder does not exist')
}

describe('the runner', () => {
  let directory = ''

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'conformance-'))
    const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })
    const collateral = simulator.collateral()
    const { ek, ask, ark } = simulator.certificates()
    const toPem = (der: Uint8Array) =>
      `-----BEGIN CERTIFICATE-----\n${Buffer.from(der).toString('base64')}\n-----END CERTIFICATE-----\n`
    await Promise.all([
      writeFile(join(directory, 'quote'), simulator.quote({ reportData: new Uint8Array(64) })),
      writeFile(join(directory, 'collateral.json'), `${JSON.stringify(collateral)}\n`),
      writeFile(join(directory, 'root.der'), parsePem(collateral.pck_crl_issuer_chain)[1] ?? ''),
      writeFile(join(directory, 'report'), simulator.report({ reportData: new Uint8Array(64) })),
      writeFile(join(directory, 'ek.der'), ek),
      writeFile(join(directory, 'ark.der'), ark),
      writeFile(join(directory, 'chain.pem'), toPem(ask) + toPem(ark)),
    ])
  })

  afterAll(() => rm(directory, { recursive: true }))

  const tdx = {
    id: 'tdx',
    quote: 'quote',
    collateral: 'collateral.json',
    trustRoot: 'root.der',
    verifyAt: '2026-06-15T00:00:00Z',
  }
  const snp = {
    id: 'snp',
    report: 'report',
    endorsementKeyCert: 'ek.der',
    chain: 'chain.pem',
    trustRoot: 'ark.der',
    verifyAt: '2026-06-15T00:00:00Z',
  }

  async function run(cases: object) {
    await writeFile(join(directory, 'cases.json'), JSON.stringify({ format: 1, ...cases }))
    return (await runCases(directory)).map(({ faults, unknown }) => ({
      faults: faults.length,
      unknown: unknown.length,
    }))
  }

  test.each([
    ['as expected', { result: 'verified', tcbStatus: 'UpToDate', flags: [], advisoryIDs: [], quoteVersion: 4 }, 0, 0],
    ['another status', { result: 'verified', tcbStatus: 'OutOfDate' }, 1, 0],
    ['a flag that is not there', { result: 'verified', flags: ['DEBUG'] }, 1, 0],
    ['an unknown flag', { result: 'verified', flags: ['SOMETHING'] }, 0, 1],
    ['an unknown field', { result: 'verified', something: 1 }, 0, 1],
    ['an expected rejection', { result: 'rejected', reason: 'something' }, 1, 0],
  ])('compares a quote case: %s', async (_, expect_, faults, unknown) => {
    expect(await run({ tdx: [{ ...tdx, expect: expect_ }] })).toEqual([{ faults, unknown }])
  })

  test.each([
    ['as expected', { result: 'verified', product: 'Milan-B0', signingKey: 'VCEK', chipId: '...' }, 0],
    ['another chip', { result: 'verified', chipId: 'ffffffffffffffff...' }, 1],
  ])('compares a report case: %s', async (_, expect_, faults) => {
    expect(await run({ snp: [{ ...snp, expect: expect_ }] })).toEqual([{ faults, unknown: 0 }])
  })

  test('fails an unreadable case and runs the others', async () => {
    const expect_ = { result: 'rejected', reason: 'no such file' }
    const outcomes = await run({
      tdx: [
        { ...tdx, quote: 'missing', expect: expect_ },
        { ...tdx, expect: { result: 'verified' } },
      ],
    })
    expect(outcomes.map(({ faults }) => faults)).toEqual([1, 0])
  })

  test('rejects a set of cases of another format', async () => {
    await expect(run({ format: 2 })).rejects.toThrow()
  })
})
