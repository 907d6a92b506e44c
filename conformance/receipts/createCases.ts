import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toCanonicalJson } from '@countersign/protocol'
import {
  type Anchors,
  encodeCarHeader,
  encodeCarSection,
  encodeReceiptCar,
  type GivenBlocks,
  parseBlock,
  parseCar,
  toCid,
} from '@countersign/receipt'
import type { AnchorCase } from '../../packages/receipt/spec/createAnchorCases.ts'
import type { ExpectedAnchored } from '../../packages/receipt/spec/createAnchorFiles.ts'
import type { CarCase, Case } from '../../packages/receipt/spec/createCaseFiles.ts'
import { type Tampering, tamper } from '../../packages/receipt/spec/tampered.ts'
import type { Variant } from '../../packages/receipt/spec/tamperedEvidence.ts'
import { type GoldenBlocks, type TamperingV2, tamperV2 } from '../../packages/receipt/spec/tamperedV2.ts'
import { tamperVault } from '../../packages/receipt/spec/tamperedVault.ts'
import { type Anchor, type BlockRole, mapBlock, type Outcome, type Reader } from './protocol.ts'
import type { Piece, ReceiptCase } from './readCases.ts'
import { checkRequest } from './typescript.ts'

const SPEC = join(import.meta.dirname, '../../packages/receipt/spec')
const read = (path: string) => new Uint8Array(readFileSync(join(SPEC, path)))
const readJson = <Value>(path: string) => JSON.parse(new TextDecoder().decode(read(path))) as Value

/** The files of a receipt. */
type Receipt = { bytes: Uint8Array; collateral?: Uint8Array; blocks: GivenBlocks }
/** A case before its number, with bytes instead of pieces, and the expectation of the specification. */
type Draft = {
  name: string
  source: string
  /** The receipt that this one was made from. */
  base?: Receipt
  receipt?: Receipt
  car?: Uint8Array
  opening?: string
  cid?: string
  anchor?: Anchor<Uint8Array>
  reader: Reader
  stated: { verdict?: string; first?: string; code?: string; steps?: Case['steps']; error?: string }
}
type Expected = { cid: string; anchors: Anchors; verdict?: string }

const golden = readJson<Expected & Pick<Reader, 'roots' | 'mockEntropyKeys'>>('golden/expected.json')
const simulated = { roots: golden.roots, mockEntropyKeys: golden.mockEntropyKeys }
const collateral = read('golden/collateral.json')
const { receipts, cases } = readJson<{ receipts: Record<string, Expected>; cases: Case[] }>(
  'golden-v2/cases/cases.json',
)

/** The receipt in a folder of `golden-v2`, or the one in a log that a checkpoint published. */
function readReceipt(folder: string): Receipt {
  const path = folder === ANCHORED ? folder : `golden-v2/${folder}`
  const has = (name: string) => existsSync(join(SPEC, path, name))
  const blocks = {
    release: read(`${path}/release.json`),
    batch: read(`${path}/batch.json`),
    coordinator: read(has('coordinator.json') ? `${path}/coordinator.json` : 'golden-v2/coordinator.json'),
    ...(has('policy.json') && { policy: read(`${path}/policy.json`) }),
  }
  return { bytes: read(`${path}/attestation.json`), collateral, blocks }
}

const ANCHORED = 'golden-anchor'
const anchored = readJson<Expected & ExpectedAnchored>(`${ANCHORED}/expected.json`)
const anchorBlock = read(`${ANCHORED}/anchor.json`)

const expected: [folder: string, Expected][] = [
  ...['', 'vaults/'].flatMap((folder) =>
    Object.entries(readJson<Record<string, Expected>>(`golden-v2/${folder}expected.json`)).map(
      ([name, one]): [string, Expected] => [folder + name, one],
    ),
  ),
  ['logged', readJson('golden-v2/logged/expected.json')],
]

function anchorsOf(folder: string): Anchors {
  if (folder === ANCHORED) return anchored.anchors
  return expected.find(([name]) => name === folder)?.[1].anchors ?? receipts[folder]?.anchors ?? {}
}

function createDrafts(): Draft[] {
  return [
    ...createDraftsOfVersion1(),
    ...expected.flatMap(([folder, one]) => createWholeDrafts(folder, one, 'golden-v2/expected.json')),
    ...createTamperedDrafts('transaction', 'golden-v2/tampered.json'),
    ...['vaults/transfer', 'vaults/revocation', 'logged'].flatMap((folder) =>
      createTamperedDrafts(folder, `golden-v2/${folder}/tampered.json`),
    ),
    ...createTamperedDrafts('vaults/transaction', 'golden-v2/vaults/tampered.json', tamperVault),
    ...createTamperedDrafts('', 'golden-v2/cases/tampered.json'),
    ...Object.entries(receipts).flatMap(([folder, one]) =>
      folder.startsWith('cases/') ? createWholeDrafts(folder, one, 'golden-v2/cases/cases.json') : [],
    ),
    ...cases.map(createCaseDraft),
    ...createCarDrafts(),
    ...createFoundDrafts(),
    ...createAnchorDrafts(),
  ]
}

/** Receipts that a checkpoint published. */
function createAnchorDrafts(): Draft[] {
  const source = `${ANCHORED}/cases.json`
  const version1 = { bytes: read('golden/receipt.json'), collateral, blocks: {} }
  const { logContracts } = anchored.anchors
  const chain = { events: anchored.events as NonNullable<Reader['chain']>['events'], transaction: 'mined' as const }
  return [
    ...createWholeDrafts(ANCHORED, anchored, `${ANCHORED}/expected.json`),
    ...readJson<AnchorCase[]>(source).map(({ receipt = ANCHORED, anchor: changes, ...one }): Draft => {
      const { block, ...named } = { ...anchored.anchor, ...changes }
      const given = block === undefined ? anchorBlock : new TextEncoder().encode(block ?? '')
      return {
        ...createCaseDraft({ ...one, receipt }),
        name: `anchor: ${one.name}`,
        source,
        anchor: { ...named, ...(block !== null && { block: given }) },
      }
    }),
    {
      name: 'anchor: a receipt of version 1',
      source: 'anchor-v1.md',
      receipt: version1,
      anchor: { ...anchored.anchor, block: anchorBlock },
      reader: { ...simulated, anchors: { ...golden.anchors, logContracts }, chain },
      stated: { verdict: 'incomplete', steps: { event: 'skip' } },
    },
  ]
}

/** Cases that two verifiers answered differently at first. */
function createFoundDrafts(): Draft[] {
  const source = 'receipt-v2.md'
  const plain = (name: string, receipt: string, given: Partial<Case>): Draft => ({
    ...createCaseDraft({ name, receipt, verdict: 'incomplete', steps: {}, ...given }),
    source,
  })
  const { chain, ...eventful } = cases.find(({ name }) => name === 'an event after 9 s')?.reader ?? {}
  const events =
    chain?.events.map((event) => ({ ...event, address: `0x${event.address.slice(2).toUpperCase()}` })) ?? []
  const { witnesses } = JSON.parse(new TextDecoder().decode(read('golden-v2/logged/batch.json'))).settings.log
  const budgeted = { log: 'skip', 'vault-policy': 'pass', 'vault-rule': 'skip' } as const
  const vaults = ['vaults/transfer', 'vaults/eip3009', 'vaults/revocation']
  const [base, car] = [readReceipt('transaction'), Buffer.from(read('golden-v2/cases/transaction.car'))]
  return [
    ...vaults.flatMap((receipt) =>
      (['batch', 'coordinator'] as const).map((block) =>
        plain(`${receipt}, without the ${block}`, receipt, { without: [block], steps: budgeted }),
      ),
    ),
    plain('an authorization without the batch', 'authorization', { without: ['batch'], steps: { digest: 'pass' } }),
    plain('an event with the contract in upper case', 'cases/attested', {
      reader: { ...eventful, chain: { events, transaction: 'mined' } },
      verdict: 'verified',
      steps: { event: 'pass' },
    }),
    plain('a reader’s quorum of less than half of the witnesses', 'logged', {
      reader: { anchors: { logWitnesses: [{ witnesses, quorum: 1 }] } },
      verdict: 'failed',
      steps: { log: 'fail' },
    }),
    {
      name: 'CAR: a byte missing in the CID of the first section',
      source,
      base,
      car: Buffer.concat([car.subarray(0, 62), car.subarray(63)]),
      reader: { ...simulated, anchors: receipts.transaction?.anchors ?? {} },
      stated: { error: 'car_mismatch' },
    },
  ]
}

function createDraftsOfVersion1(): Draft[] {
  const receipt = { bytes: read('golden/receipt.json'), collateral, blocks: {} }
  const parsed = readJson<object>('golden/receipt.json')
  const { cid, anchors } = golden
  const change = (changes: Tampering['changes']) => ({
    ...receipt,
    bytes: toCanonicalJson(tamper(parsed, { changes })),
  })
  const whole = createWholeDraftsOf(receipt, golden, 'golden/expected.json', 'version 1')
  return [
    ...whole,
    {
      name: 'version 1, with an opening',
      source: 'receipt-v2.md',
      receipt,
      cid,
      opening: '{}',
      reader: { ...simulated, anchors },
      stated: { verdict: 'failed', first: 'opening' },
    },
    ...readJson<Tampering[]>('golden/tampered.json').map(
      ({ name, changes, step }): Draft => ({
        name,
        source: 'golden/tampered.json',
        base: receipt,
        receipt: change(changes),
        reader: { ...simulated, anchors },
        stated: { verdict: 'failed', first: step },
      }),
    ),
    ...readJson<Variant[]>('golden/variants.json').map(
      ({ name, changes, anchors: changed }): Draft => ({
        name,
        source: 'golden/variants.json',
        base: receipt,
        receipt: change(changes),
        reader: { ...simulated, anchors: { ...anchors, ...changed } },
        stated: { verdict: 'mock' },
      }),
    ),
  ]
}

function createWholeDrafts(folder: string, expected: Expected, source: string): Draft[] {
  return createWholeDraftsOf(readReceipt(folder), expected, source, folder)
}

/** A golden receipt: as blocks requested by CID, under another CID, and as a CAR file. */
function createWholeDraftsOf(receipt: Receipt, { cid, anchors, verdict }: Expected, source: string, name: string) {
  const reader = { ...simulated, anchors }
  const stated = { ...(verdict && { verdict }), steps: { cid: 'pass' } as const }
  const other = { verdict: 'failed', first: 'cid' }
  return [
    { name: `${name}, by its CID`, source, receipt, cid, reader, stated },
    { name: `${name}, by the CID of the collateral`, source, receipt, cid: toCid(collateral), reader, stated: other },
    {
      name: `${name}, as a CAR file`,
      source,
      base: receipt,
      car: encodeReceiptCar(receipt),
      reader,
      stated: { ...(verdict && { verdict }) },
    },
  ] satisfies Draft[]
}

type Tampered = TamperingV2<BlockRole | 'attestation'> & { receipt?: string }

function createTamperedDrafts(folder: string, source: string, change?: typeof tamperVault): Draft[] {
  return readJson<Tampered[]>(source).map(({ name, step, code, receipt: other = folder, ...tampering }) => {
    const base = readReceipt(other)
    const changed =
      change?.(
        { ...base, bytes: Uint8Array.from(base.bytes) } as Parameters<typeof tamperVault>[0],
        tampering as never,
      ) ?? tamperV2(parse(base), tampering as TamperingV2)
    return {
      name: `${other}: ${name}`,
      source,
      base,
      receipt: { collateral, bytes: changed.bytes, blocks: { ...base.blocks, ...changed.blocks } },
      reader: { ...simulated, anchors: anchorsOf(other) },
      stated: { verdict: 'failed', first: step, ...(code !== undefined && { code }) },
    }
  })
}

function parse({ bytes, blocks: { release, batch, coordinator } }: Receipt): GoldenBlocks {
  if (release === undefined || batch === undefined || coordinator === undefined) throw new Error('a block is missing')
  return {
    attestation: parseBlock('attestation', bytes),
    batch: parseBlock('batch', batch),
    coordinator: parseBlock('coordinator', coordinator),
    release: parseBlock('release', release),
  }
}

function createCaseDraft({ name, receipt: folder, without = [], opening, reader: given = {}, ...rest }: Case): Draft {
  const whole = readReceipt(folder)
  const { roots, isHardware, anchors: changes, revocations, reevaluation, ...others } = given
  const anchors = { ...anchorsOf(folder), ...changes }
  const hardware = { roots: golden.roots.map((root) => ({ ...root, mode: 'hardware' as const })), mockEntropyKeys: [] }
  return {
    name,
    source: 'golden-v2/cases/cases.json',
    receipt: {
      bytes: whole.bytes,
      ...(!without.includes('collateral') && { collateral }),
      blocks: Object.fromEntries(
        Object.entries(whole.blocks).filter(([role]) => !without.includes(role as (typeof without)[number])),
      ),
    },
    ...(opening !== undefined && { opening }),
    reader: {
      ...(isHardware ? hardware : simulated),
      ...(roots && { roots }),
      // A null removes a member.
      anchors: Object.fromEntries(Object.entries(anchors).filter(([, value]) => value !== null)),
      ...others,
      ...(revocations && { revocations }),
      ...(reevaluation && {
        reevaluation: {
          at: reevaluation.at,
          collateral: Buffer.from(read(`golden-v2/cases/${reevaluation.collateral}`)).toString('base64'),
        },
      }),
    },
    stated: rest,
  }
}

function createCarDrafts(): Draft[] {
  const base = readReceipt('transaction')
  const { root, blocks } = parseCar(read('golden-v2/cases/transaction.car'))
  const order = ['attestation', 'release', 'coordinator', 'batch', 'collateral'] as const
  const byName = Object.fromEntries([...blocks.values()].map((block, place) => [order[place], block]))
  return readJson<CarCase[]>('golden-v2/cases/cars.json').map(({ name, sections = order, replace, error, verdict }) => {
    const parts = sections.map((section) => byName[section] as Uint8Array)
    const file = Buffer.concat([encodeCarHeader(root), ...parts.map((block) => encodeCarSection(toCid(block), block))])
    const { start, end, hex } = replace ?? { start: 0, end: 0, hex: '' }
    return {
      name: `CAR: ${name}`,
      source: 'golden-v2/cases/cars.json',
      base,
      car: Buffer.concat([file.subarray(0, start), Buffer.from(hex, 'hex'), file.subarray(end)]),
      reader: { ...simulated, anchors: receipts.transaction?.anchors ?? {} },
      stated: { ...(error !== null && { error }), ...(verdict && { verdict }) },
    }
  })
}

/** The kit's files, by their path in this folder. Throws if our verifier contradicts the specification's test files. */
export async function createCases(): Promise<Map<string, string | Uint8Array>> {
  const files = new Map<string, string | Uint8Array>()
  const addFile = (content: string | Uint8Array): string => {
    const name = createHash('sha256').update(content).digest('hex')
    files.set(`files/${name}`, content)
    return name
  }
  const drafts = createDrafts()
  const lines: string[] = []
  for (const [index, draft] of drafts.entries()) {
    const { name, source, base, receipt, car, opening, cid, anchor, reader } = draft
    const number = index + 1
    const expected = state(await checkDraft(draft), draft)
    // A block of the receipt that this one was made from is a whole file. Others are written as what differs.
    const known = toFiles(base ?? receipt).map(([role, bytes]) => ({ role, bytes, file: addFile(bytes) }))
    const toPieces = (role: string, bytes: Uint8Array): Piece[] =>
      car !== undefined
        ? splitCar(bytes, known)
        : split(
            bytes,
            known.find((one) => one.role === role),
          )
    const parts = Object.fromEntries(toFiles(receipt).map(([role, bytes]) => [role, toPieces(role, bytes)]))
    const toAnchorPieces = (block: Uint8Array) => split(block, { bytes: anchorBlock, file: addFile(anchorBlock) })
    const { attestation, ...blocks } = parts
    const one: ReceiptCase = {
      number,
      name,
      source,
      ...(attestation && { receipt: attestation, blocks }),
      ...(car && { car: toPieces('car', car) }),
      ...(opening !== undefined && { opening: [{ text: opening }] }),
      ...(cid !== undefined && { cid }),
      ...(anchor && { anchor: mapBlock(anchor, toAnchorPieces) }),
      reader: addFile(JSON.stringify(reader)),
      expected,
    }
    lines.push(JSON.stringify(one))
  }
  return files.set('cases.json', `[\n${lines.join(',\n')}\n]\n`)
}

function toFiles(receipt: Receipt | undefined): [role: string, bytes: Uint8Array][] {
  if (receipt === undefined) return []
  const { bytes, collateral: shared, blocks } = receipt
  return Object.entries({ attestation: bytes, collateral: shared, ...blocks }).filter(
    (entry): entry is [string, Uint8Array] => entry[1] !== undefined,
  )
}

function checkDraft({ receipt, car, opening, cid, anchor, reader }: Draft): Promise<Outcome> {
  const toBase64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64')
  const { attestation, ...blocks } = Object.fromEntries(toFiles(receipt).map(([role, one]) => [role, toBase64(one)]))
  return checkRequest({
    ...(attestation !== undefined && { receipt: attestation, blocks }),
    ...(car && { car: toBase64(car) }),
    ...(opening !== undefined && { opening: toBase64(opening) }),
    ...(cid !== undefined && { cid }),
    ...(anchor && { anchor: mapBlock(anchor, toBase64) }),
    reader,
  })
}

/** The expected answer: all steps up to the first that fails, and those that the specification's file states. */
function state(found: Outcome, { name, source, stated }: Draft): Outcome {
  const contradict = (what: string) =>
    new Error(`${source}, ${name}: ${what}, but the verifier found ${JSON.stringify(found)}`)
  if ('error' in found) {
    if (found.error !== stated.error) throw contradict(`error ${stated.error}`)
    return found
  }
  if (stated.error !== undefined) throw contradict(`error ${stated.error}`)
  const { verdict, steps, codes } = found
  const entries = Object.entries(steps)
  const failing = entries.findIndex(([, status]) => status === 'fail')
  if (stated.verdict !== undefined && stated.verdict !== verdict) throw contradict(`verdict ${stated.verdict}`)
  if (stated.first !== undefined && stated.first !== entries[failing]?.[0])
    throw contradict(`${stated.first} fails first`)
  if (stated.code !== undefined && stated.code !== codes?.[stated.first ?? '']) throw contradict(`code ${stated.code}`)
  for (const [id, status] of Object.entries(stated.steps ?? {})) {
    if ((steps[id] ?? 'skip') !== status) throw contradict(`${id}: ${status}`)
  }
  const certain = failing === -1 ? entries : entries.slice(0, failing + 1)
  return { verdict, steps: { ...Object.fromEntries(certain), ...stated.steps }, ...(codes && { codes }) }
}

type KnownFile = { bytes: Uint8Array; file: string }

/** Writes bytes as a known file with one part replaced. */
function split(bytes: Uint8Array, known: KnownFile | undefined): Piece[] {
  if (known === undefined) return [toPiece(bytes)]
  const { bytes: old, file } = known
  let start = 0
  while (start < Math.min(old.length, bytes.length) && old[start] === bytes[start]) start += 1
  if (start === old.length && start === bytes.length) return [{ file }]
  let same = 0
  while (same < Math.min(old.length, bytes.length) - start && old.at(-1 - same) === bytes.at(-1 - same)) same += 1
  return [
    ...(start > 0 ? [{ file, start: 0, end: start }] : []),
    ...(bytes.length - same > start ? [toPiece(bytes.subarray(start, bytes.length - same))] : []),
    ...(same > 0 ? [{ file, start: old.length - same, end: old.length }] : []),
  ]
}

/** Writes a CAR file as its blocks, which are known files, and the bytes between them. */
function splitCar(car: Uint8Array, known: readonly KnownFile[]): Piece[] {
  const bytes = Buffer.from(car)
  const found = known
    .flatMap(({ bytes: block, file }) => {
      const at = bytes.indexOf(block)
      return at === -1 ? [] : [{ at, end: at + block.length, file }]
    })
    .toSorted((one, other) => one.at - other.at)
  const ends = [0, ...found.map(({ end }) => end)]
  return [
    ...found.flatMap(({ at, file }, index): Piece[] => [{ hex: bytes.toString('hex', ends[index], at) }, { file }]),
    ...(bytes.length > (ends.at(-1) ?? 0) ? [{ hex: bytes.toString('hex', ends.at(-1)) }] : []),
  ]
}

function toPiece(bytes: Uint8Array): Piece {
  const text = new TextDecoder().decode(bytes)
  return Buffer.from(text).equals(bytes) ? { text } : { hex: Buffer.from(bytes).toString('hex') }
}

if (import.meta.main) {
  const files = await createCases()
  rmSync(join(import.meta.dirname, 'files'), { recursive: true, force: true })
  mkdirSync(join(import.meta.dirname, 'files'))
  for (const [path, content] of files) writeFileSync(join(import.meta.dirname, path), content)
}
