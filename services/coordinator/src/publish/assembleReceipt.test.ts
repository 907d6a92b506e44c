import { checkReceipt, MAX_RECEIPT_BYTES, parseReceipt, ReceiptError, toCid } from '@countersign/receipt'
import { createReceiptSimulator, type SimulatedIssue } from '@countersign/receipt/simulator'
import { describe, expect, test } from 'vitest'
import type { PinRecords } from '../store/findPins.ts'
import { assembleReceipt } from './assembleReceipt.ts'

const simulator = createReceiptSimulator()
const issue = await simulator.issue({ signedAt: new Date('2026-06-15T12:00:00.000Z'), treeSize: 5, leafIndex: 2 })

/** A signing as the store returns it, without the collateral's CID. */
type WorkV1 = { records: PinRecords & { version: 1 } }
function toWork({ records, collateral }: SimulatedIssue): WorkV1 {
  const { collateral: _cid, ...batch } = records.batch
  return { records: { version: 1, ...records, batch, collateral } }
}

function withData(bytes: number): WorkV1 {
  const work = toWork(issue)
  const txMetadata = { ...work.records.txMetadata, data: `0x${'00'.repeat(bytes)}` as const }
  return { ...work, records: { ...work.records, txMetadata } }
}

function codeOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    if (error instanceof ReceiptError) return error.code
    throw error
  }
  return undefined
}

describe('assembleReceipt', () => {
  test('assembles the issued receipt byte for byte, and its collateral', async () => {
    const { receipt, collateral } = assembleReceipt(toWork(issue))
    expect(Buffer.from(receipt.bytes).equals(issue.bytes)).toBe(true)
    expect(receipt.cid).toBe(issue.cid)
    expect(collateral).toEqual({ cid: toCid(issue.collateral), bytes: issue.collateral })
    const { roots, mockEntropyKeys } = simulator
    const options = { roots, mockEntropyKeys, anchors: issue.anchors, cid: receipt.cid }
    expect(await checkReceipt(receipt.bytes, collateral.bytes, options)).toMatchObject({
      verdict: 'mock',
      isKnownCode: true,
    })
  })

  test('names the given collateral', () => {
    const bytes = new TextEncoder().encode('{"another":"collateral"}')
    const { records } = toWork(issue)
    const { receipt, collateral } = assembleReceipt({ records: { ...records, collateral: bytes } })
    expect(collateral.cid).toBe(toCid(bytes))
    expect(parseReceipt(receipt.bytes).signer.collateral).toBe(toCid(bytes))
    expect(receipt.cid).not.toBe(issue.cid)
  })

  test('does not depend on the order of members', () => {
    const work = toWork(issue)
    const statement = Object.fromEntries(Object.entries(work.records.statement).toReversed())
    const records = { ...work.records, statement: statement as typeof work.records.statement }
    expect(assembleReceipt({ ...work, records }).receipt.cid).toBe(issue.cid)
  })

  test('rejects a receipt larger than 256 KiB', () => {
    const room = Math.floor((MAX_RECEIPT_BYTES - issue.bytes.length) / 2)
    const { length } = assembleReceipt(withData(room)).receipt.bytes
    expect(length).toBeLessThanOrEqual(MAX_RECEIPT_BYTES)
    expect(length).toBeGreaterThan(MAX_RECEIPT_BYTES - 2)
    expect(codeOf(() => assembleReceipt(withData(room + 1)))).toBe('receipt_too_large')
  })

  test('rejects records that do not form a receipt', () => {
    const work = toWork(issue)
    const batch = { ...work.records.batch, quoteHex: 'zz' }
    expect(codeOf(() => assembleReceipt({ ...work, records: { ...work.records, batch } }))).toBe('receipt_malformed')
  })
})
