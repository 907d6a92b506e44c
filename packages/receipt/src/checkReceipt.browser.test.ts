import { expect, test } from 'vitest'
import { checkReceipt } from './index.ts'
import { createReceiptSimulator } from './simulator/index.ts'

const service = createReceiptSimulator()
const { bytes, collateral, anchors, cid } = await service.issue({
  signedAt: new Date('2026-06-15T12:00:00.123Z'),
  treeSize: 5,
  leafIndex: 2,
  batchSequence: 3,
})
const options = { roots: service.roots, anchors, mockEntropyKeys: service.mockEntropyKeys, cid }

test('a receipt created in the browser equals the golden one', () => {
  expect(navigator.userAgent).toContain('Chrome')
  expect(cid).toMatchInlineSnapshot(`"bafkreidbkt37u6a7rjd2iv752qqarmf6nwyqii4pf3ief5f63wrff2dade"`)
})

test('the same checkReceipt passes every step in Chromium', async () => {
  const { verdict, steps } = await checkReceipt(bytes, collateral, options)
  expect(verdict).toBe('mock')
  expect(steps.filter(({ status }) => status === 'fail')).toEqual([])
})

test('a changed byte fails in Chromium too', async () => {
  for (const position of [200, 9_000, 20_000, bytes.length - 20]) {
    const changed = new Uint8Array(bytes)
    changed[position] = (changed[position] ?? 0) ^ 1
    expect((await checkReceipt(changed, collateral, options)).verdict).toBe('failed')
  }
})

test('checkReceipt verifies a receipt of version 2 in Chromium as in Node: both signatures, a beacon, an opening', async () => {
  const signing = { kind: 'typed-data' } as const
  const issue = await service.issueV2({ signedAt: new Date('2026-06-15T12:00:00.123Z'), signing, isBeacon: true })
  const opening = new TextEncoder().encode(JSON.stringify(issue.opening))
  const files = { ...options, anchors: issue.anchors, cid: issue.cid, blocks: issue.blocks, opening }
  const { verdict, steps } = await checkReceipt(issue.bytes, issue.collateral, files)
  expect([verdict, steps.filter(({ status }) => status === 'fail')]).toEqual(['mock', []])
  for (const name of ['release', 'batch', 'coordinator'] as const) {
    const changed = new Uint8Array(issue.blocks[name])
    changed[200] = (changed[200] ?? 0) ^ 1
    const blocks = { ...issue.blocks, [name]: changed }
    expect((await checkReceipt(issue.bytes, issue.collateral, { ...files, blocks })).verdict).toBe('failed')
  }
})
