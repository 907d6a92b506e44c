import { readFileSync, writeFileSync } from 'node:fs'
import { receiptSchema } from '@countersign/receipt'
import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { z } from 'zod'
import { createTamperings } from './tampered.ts'

/** When the golden receipt was signed. */
export const GOLDEN_SIGNED_AT = new Date('2026-06-15T12:00:00.123Z')

/** The files beside the prose that another implementation can be tested with, by their path in this folder. */
export async function createSpecFiles(): Promise<Map<string, string>> {
  const service = createReceiptSimulator()
  const issue = await service.issue({ signedAt: GOLDEN_SIGNED_AT, treeSize: 5, leafIndex: 2, batchSequence: 3 })
  const { bytes, collateral, cid, anchors, receipt } = issue
  const decode = (block: Uint8Array) => new TextDecoder().decode(block)
  const schema = z.toJSONSchema(receiptSchema, { target: 'draft-2020-12' })
  return new Map([
    [
      'receipt-v1.schema.json',
      toJson({ $id: 'urn:countersign:spec:receipt:1', title: 'AttestationReceiptV1', ...schema }),
    ],
    ['golden/receipt.json', decode(bytes)],
    ['golden/collateral.json', decode(collateral)],
    [
      'golden/expected.json',
      toJson({ cid, anchors, roots: service.roots, mockEntropyKeys: service.mockEntropyKeys, verdict: 'mock' }),
    ],
    ['golden/tampered.json', toJson(createTamperings(receipt))],
  ])
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

export function readSpecFile(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

if (import.meta.main) {
  for (const [path, text] of await createSpecFiles()) writeFileSync(new URL(path, import.meta.url), text)
}
