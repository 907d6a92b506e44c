import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { toHex } from '@countersign/protocol'
import { anchorSchemas, blockSchemas, encodeReceiptCar, parseBlock, receiptSchema } from '@countersign/receipt'
import {
  createReceiptSimulator,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
  type SimulatedSigning,
} from '@countersign/receipt/simulator'
import { sha256 } from '@noble/hashes/sha2.js'
import { z } from 'zod'
import { goldenVaults } from '../test/vaults.ts'
import { createTamperings } from './tampered.ts'
import { createBudgetTamperings, createRevocationTamperings } from './tamperedBudget.ts'
import { createEvidenceTamperings, createVariants } from './tamperedEvidence.ts'
import { createLogTamperings, goldenLog } from './tamperedLog.ts'
import { createTamperingsV2, type GoldenBlocks } from './tamperedV2.ts'
import { createVaultTamperings } from './tamperedVault.ts'

/** When the golden receipts are signed. */
export const GOLDEN_SIGNED_AT = new Date('2026-06-15T12:00:00.123Z')

/** The place of golden receipts in their batch. */
const golden = { signedAt: GOLDEN_SIGNED_AT, treeSize: 5, leafIndex: 2, batchSequence: 3 }

/** The test files for other implementations, by their path in this folder. */
export async function createSpecFiles(): Promise<Map<string, string>> {
  const service = createReceiptSimulator()
  const { bytes, collateral, cid, anchors, receipt } = await service.issue(golden)
  const tamperings = [...createTamperings(receipt), ...(await createEvidenceTamperings(service, receipt, golden))]
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
    ['golden/tampered.json', toJson(tamperings)],
    ['golden/variants.json', toJson(await createVariants(service, receipt, golden))],
    ...(await createSpecFilesV2()),
  ])
}

/** The golden receipts of version 2. */
export const goldenSignings = {
  transaction: { kind: 'transaction' },
  authorization: { kind: 'authorization' },
  'off-chain': { kind: 'typed-data' },
} as const satisfies Record<string, SimulatedSigning>

/** A golden receipt of version 2. All have the same coordinator and collateral. */
export function issueGolden(signing: SimulatedSigning, options: Partial<SimulatedAttestationOptions> = {}) {
  return createReceiptSimulator().issueV2({ ...golden, ...options, signing })
}

export function parseGolden({ bytes, blocks }: SimulatedAttestation): GoldenBlocks {
  return {
    attestation: parseBlock('attestation', bytes),
    batch: parseBlock('batch', blocks.batch),
    coordinator: parseBlock('coordinator', blocks.coordinator),
    release: parseBlock('release', blocks.release),
  }
}

async function createSpecFilesV2(): Promise<[string, string][]> {
  const decode = (block: Uint8Array) => new TextDecoder().decode(block)
  const schemas = [...toSchemaFiles('receipt', 2, blockSchemas), ...toSchemaFiles('anchor', 1, anchorSchemas)]
  const files: [string, string][] = []
  const expected: Record<string, unknown> = {}
  for (const [name, signing] of Object.entries(goldenSignings)) {
    const issue = await issueGolden(signing)
    files.push(...toGoldenFiles(`golden-v2/${name}`, issue))
    if (name === 'transaction') {
      files.push(['golden-v2/coordinator.json', decode(issue.blocks.coordinator)])
      files.push(['golden-v2/tampered.json', toJson(createTamperingsV2(parseGolden(issue)))])
    }
    expected[name] = toExpected(issue)
  }
  const rest = [...(await createVaultFiles()), ...(await createLogFiles())]
  return [...schemas, ...files, ['golden-v2/expected.json', toJson(expected)], ...rest]
}

function toSchemaFiles(format: string, version: number, schemas: Record<string, z.ZodType>): [string, string][] {
  return Object.entries(schemas).map(([name, schema]): [string, string] => [
    `${format}-v${version}.${name}.schema.json`,
    toJson({
      $id: `urn:countersign:spec:${format}:${version}:${name}`,
      ...z.toJSONSchema(schema, { target: 'draft-2020-12' }),
    }),
  ])
}

/** A transaction in a log. */
async function createLogFiles(): Promise<[string, string][]> {
  const issue = await issueGolden({ kind: 'transaction' }, { log: goldenLog })
  return [
    ...toGoldenFiles('golden-v2/logged', issue),
    ['golden-v2/logged/expected.json', toJson(toExpected(issue))],
    ['golden-v2/logged/tampered.json', toJson(createLogTamperings(parseGolden(issue)))],
  ]
}

/** Receipts of vaults and addresses. */
async function createVaultFiles(): Promise<[string, string][]> {
  const files: [string, string][] = []
  const expected: Record<string, unknown> = {}
  for (const [name, { signing, ...options }] of Object.entries(goldenVaults)) {
    const issue = await issueGolden(signing, options)
    files.push(...toGoldenFiles(`golden-v2/vaults/${name}`, issue))
    if (name === 'transaction') {
      files.push(['golden-v2/vaults/tampered.json', toJson(createVaultTamperings(issue))])
    }
    if (name === 'transfer' || name === 'revocation') {
      const create = name === 'transfer' ? createBudgetTamperings : createRevocationTamperings
      files.push([`golden-v2/vaults/${name}/tampered.json`, toJson(create(parseGolden(issue)))])
    }
    expected[name] = toExpected(issue)
  }
  return [...files, ['golden-v2/vaults/expected.json', toJson(expected)]]
}

function toGoldenFiles(folder: string, { bytes, blocks, opening, owner }: SimulatedAttestation): [string, string][] {
  const decode = (block: Uint8Array) => new TextDecoder().decode(block)
  return [
    [`${folder}/attestation.json`, decode(bytes)],
    [`${folder}/batch.json`, decode(blocks.batch)],
    [`${folder}/release.json`, decode(blocks.release)],
    ...[opening, owner].flatMap((one): [string, string][] =>
      one === undefined ? [] : [[`${folder}/opening.json`, toJson(one)]],
    ),
    ...(blocks.policy === undefined ? [] : [[`${folder}/policy.json`, decode(blocks.policy)] as [string, string]]),
  ]
}

function toExpected(issue: SimulatedAttestation) {
  const { cid, anchors } = issue
  return { cid, anchors, carSha256: toHex(sha256(encodeReceiptCar(issue))), verdict: 'mock' }
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
