import { createVerifier } from '@countersign/attestation'
import { parseOpening, toCanonicalJson } from '@countersign/protocol'
import {
  type CheckReceiptOptions,
  checkReceipt,
  encodeReceiptCar,
  parseBlock,
  parseReceipt,
  parseReceiptCar,
  toCid,
  toCidHash,
} from '@countersign/receipt'
import { createReceiptSimulator } from '@countersign/receipt/simulator'
import fc from 'fast-check'
import { goldenVaults } from '../../packages/receipt/test/vaults.ts'
import type { Subject } from './subject.ts'

const AT = new Date('2026-06-15T00:00:00Z')
const BLOCKS = ['attestation', 'release', 'batch', 'coordinator', 'policy'] as const

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Public data of a signature: receipts of both versions, blocks of version 2, CAR files and openings. */
export async function createReceiptSubjects(): Promise<Subject[]> {
  const service = createReceiptSimulator()
  const options = { signedAt: AT, treeSize: 3, leafIndex: 1 }
  const first = await service.issue(options)
  const revocations = {}
  const message = await service.issueV2({ ...options, revocations, signing: { kind: 'message' } })
  const typedData = await service.issueV2({ ...options, signing: { kind: 'typed-data' } })
  const transaction = await service.issueV2({ ...options, signing: { kind: 'transaction' }, isBeacon: true })
  const authorization = await service.issueV2({ ...options, signing: { kind: 'authorization' } })
  const vaults = await Promise.all(
    Object.values(goldenVaults).map((vault) => service.issueV2({ ...options, ...vault })),
  )
  const logged = await service.issueV2({ ...options, log: {} })
  const issues = [message, typedData, transaction, authorization, logged, ...vaults]
  const { roots, mockEntropyKeys } = service
  const verifier = createVerifier({ roots })
  const attestations = issues.map(({ bytes }) => bytes)
  const openings = issues.flatMap(({ opening }) =>
    opening === undefined ? [] : [new TextEncoder().encode(JSON.stringify(opening))],
  )

  /** Checks a receipt with one changed block. The CIDs that refer to the block are recomputed, so that the check doesn't stop at them. */
  async function check(changed: Uint8Array<ArrayBuffer>) {
    const { block, value, issue } = readCase(changed)
    const { bytes, collateral, blocks, anchors, opening } = issues[issue] ?? message
    const given = { ...blocks, ...(block !== 'attestation' && { [block]: toCanonicalJson(value) }) }
    const named = { batch: toCid(given.batch), coordinator: toCid(given.coordinator) }
    const release =
      block === 'release' ? given.release : toCanonicalJson({ ...parseBlock('release', given.release), ...named })
    const receipt = parseBlock('attestation', bytes)
    const policy = given.policy && toCid(given.policy)
    const statement = { ...receipt.signer.statement, policy: policy === undefined ? null : toCidHash(policy) }
    const signer = { ...receipt.signer, statement, batch: named.batch }
    const coordinator = { release: toCid(release) }
    const whole = toCanonicalJson({ ...receipt, signer, coordinator, ...(policy && { policy }) })
    const checking: CheckReceiptOptions = {
      roots,
      anchors,
      mockEntropyKeys,
      verifier,
      blocks: { ...given, release },
      ...(opening && { opening: new TextEncoder().encode(JSON.stringify(opening)) }),
    }
    await checkReceipt(block === 'attestation' ? toCanonicalJson(value) : whole, collateral, checking)
  }

  const cases = fc
    .tuple(fc.constantFrom(...BLOCKS), fc.nat(issues.length - 1), fc.nat(), anyJson())
    .map(([block, issue, position, replacement]) => {
      const { bytes, blocks } = issues[issue] ?? message
      // An ordinary wallet has no policy, so its batch is changed instead.
      const found = block === 'attestation' ? bytes : (blocks[block] ?? blocks.batch)
      const genuine = JSON.parse(Buffer.from(found).toString()) as Json
      return writeCase({ block, issue, value: replace(genuine, position, replacement) })
    })

  return [
    { name: 'receipt', parse: parseReceipt, seeds: [first.bytes] },
    { name: 'attestation v2', parse: (bytes) => parseBlock('attestation', bytes), seeds: attestations },
    { name: 'release v2', parse: (bytes) => parseBlock('release', bytes), seeds: [message.blocks.release] },
    {
      name: 'batch v2',
      parse: (bytes) => parseBlock('batch', bytes),
      seeds: [message.blocks.batch, logged.blocks.batch],
    },
    { name: 'coordinator v2', parse: (bytes) => parseBlock('coordinator', bytes), seeds: [message.blocks.coordinator] },
    { name: 'CAR of a receipt', parse: parseReceiptCar, seeds: [first, ...issues].map(toCar) },
    { name: 'opening', parse: parseOpening, seeds: openings },
    { name: 'blocks v2 by member', parse: check, inputs: cases },
  ]
}

function toCar(issue: { bytes: Uint8Array; collateral: Uint8Array; blocks?: object }): Uint8Array {
  return encodeReceiptCar({ blocks: {}, ...issue })
}

type Case = { block: (typeof BLOCKS)[number]; issue: number; value: Json }

const writeCase = (each: Case) => new TextEncoder().encode(JSON.stringify(each))
const readCase = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as Case

/** JSON values of every type, including hex as in blocks. */
function anyJson(): fc.Arbitrary<Json> {
  const hex = fc.uint8Array({ maxLength: 70 }).map((bytes) => Buffer.from(bytes).toString('hex'))
  return fc.oneof(
    hex,
    hex.map((digits) => `0x${digits}`),
    fc.nat(),
    fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
  )
}

/** Replaces one member or element at any depth. */
function replace(value: Json, position: number, replacement: Json): Json {
  const paths = [...listPaths(value)]
  const path = paths[position % paths.length] ?? []
  return put(value, path, replacement)
}

function* listPaths(value: Json, path: readonly string[] = []): Generator<readonly string[]> {
  yield path
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) yield* listPaths(inner, [...path, name])
}

function put(value: Json, [name, ...rest]: readonly string[], replacement: Json): Json {
  if (name === undefined || typeof value !== 'object' || value === null) return replacement
  if (Array.isArray(value)) return value.with(Number(name), put(value[Number(name)] ?? null, rest, replacement))
  return { ...value, [name]: put(value[name] ?? null, rest, replacement) }
}
