import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { toHex } from '@countersign/protocol'
import { blockSchemas, encodeReceiptCar, parseBlock, receiptSchema } from '@countersign/receipt'
import { createReceiptSimulator, type SimulatedSigning } from '@countersign/receipt/simulator'
import { sha256 } from '@noble/hashes/sha2.js'
import { z } from 'zod'
import { createTamperings } from './tampered.ts'
import { createTamperingsV2, type GoldenBlocks } from './tamperedV2.ts'

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
    ...(await createSpecFilesV2()),
  ])
}

/** What the golden receipts of version 2 are of. */
export const goldenSignings = {
  transaction: { kind: 'transaction' },
  authorization: { kind: 'authorization' },
  'off-chain': { kind: 'typed-data' },
} as const satisfies Record<string, SimulatedSigning>

/** A golden receipt of version 2. All are of one coordinator, and share the collateral of version 1. */
export function issueGolden(signing: SimulatedSigning) {
  const batch = { treeSize: 5, leafIndex: 2, batchSequence: 3 }
  return createReceiptSimulator().issueV2({ signedAt: GOLDEN_SIGNED_AT, ...batch, signing })
}

export function parseGolden({ bytes, blocks }: Awaited<ReturnType<typeof issueGolden>>): GoldenBlocks {
  return {
    attestation: parseBlock('attestation', bytes),
    batch: parseBlock('batch', blocks.batch),
    coordinator: parseBlock('coordinator', blocks.coordinator),
    release: parseBlock('release', blocks.release),
  }
}

async function createSpecFilesV2(): Promise<[string, string][]> {
  const decode = (block: Uint8Array) => new TextDecoder().decode(block)
  const schemas = Object.entries(blockSchemas).map(([name, schema]): [string, string] => [
    `receipt-v2.${name}.schema.json`,
    toJson({
      $id: `urn:countersign:spec:receipt:2:${name}`,
      ...z.toJSONSchema(schema, { target: 'draft-2020-12' }),
    }),
  ])
  const files: [string, string][] = []
  const expected: Record<string, unknown> = {}
  for (const [name, signing] of Object.entries(goldenSignings)) {
    const issue = await issueGolden(signing)
    const { bytes, blocks, cid, anchors, opening } = issue
    files.push([`golden-v2/${name}/attestation.json`, decode(bytes)])
    files.push([`golden-v2/${name}/batch.json`, decode(blocks.batch)])
    files.push([`golden-v2/${name}/release.json`, decode(blocks.release)])
    if (opening !== undefined) files.push([`golden-v2/${name}/opening.json`, toJson(opening)])
    if (name === 'transaction') {
      files.push(['golden-v2/coordinator.json', decode(blocks.coordinator)])
      files.push(['golden-v2/tampered.json', toJson(createTamperingsV2(parseGolden(issue)))])
    }
    expected[name] = { cid, anchors, carSha256: toHex(sha256(encodeReceiptCar(issue))), verdict: 'mock' }
  }
  return [...schemas, ...files, ['golden-v2/expected.json', toJson(expected)]]
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

export function readSpecFile(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

if (import.meta.main) {
  for (const [path, text] of await createSpecFiles()) {
    const file = new URL(path, import.meta.url)
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, text)
  }
}
