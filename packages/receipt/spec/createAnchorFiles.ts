import { mkdirSync, writeFileSync } from 'node:fs'
import { toCanonicalJson, toHex, toLogId, toSizeTopic } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type Anchored,
  createAnchored,
  createCheckpointEvent,
  goldenIndex,
  LOG_ID,
  LOG_WITNESS,
  ORIGIN,
  OWNER,
  type PublishedAnchor,
  signCheckpoint,
} from '../test/anchored.ts'
import { createAnchorCases, toCaseEvent } from './createAnchorCases.ts'
import { GOLDEN_SIGNED_AT } from './createSpecFiles.ts'

/* The test files of anchor-v1.md: vectors, a golden receipt, and cases. */

/** Blocks that a reader must reject, as text. */
type RejectedAnchor = { name: string; reason: string; block: string; parts: string[] }

export type AnchorVectors = {
  ids: { owner: string; origin: string; originHash: string; id: string }[]
  events: { name: string; topics: string[]; data: string; id: string; size: number; root: string; blockHash: string }[]
  malformedEvents: { name: string; topics: string[]; data: string }[]
  anchors: {
    block: string
    blockHash: string
    parts: string[]
    size: number
    root: string
    paths: Record<string, readonly string[]>
  }[]
  rejected: RejectedAnchor[]
}

/** The content of `golden-anchor/expected.json`. */
export type ExpectedAnchored = {
  cid: string
  anchors: object
  /** The member `anchor` of a request in the conformance kit, without the block. */
  anchor: { contract: string; id: string; size: number; path: readonly string[] }
  events: object[]
  verdict: 'mock'
}

/** The files, by their path in this folder. */
export async function createAnchorFiles(): Promise<Map<string, string | Uint8Array>> {
  const anchored = await createAnchored(golden)
  const { issue, anchors } = anchored
  const [, own] = anchors
  const expected: ExpectedAnchored = {
    cid: issue.cid,
    anchors: { ...issue.anchors, logContracts: anchored.logContracts },
    anchor: toGivenAnchor(own),
    events: [toCaseEvent(createCheckpointEvent(own))],
    verdict: 'mock',
  }
  return new Map<string, string | Uint8Array>([
    ['anchor-v1.vectors.json', toJson(createVectors(anchored))],
    ['golden-anchor/attestation.json', issue.bytes],
    ['golden-anchor/batch.json', issue.blocks.batch],
    ['golden-anchor/release.json', issue.blocks.release],
    ['golden-anchor/anchor.json', own.bytes],
    ...own.partBytes.map((bytes, index): [string, Uint8Array] => [`golden-anchor/part-${index}.json`, bytes]),
    ['golden-anchor/expected.json', toJson(expected)],
    ['golden-anchor/cases.json', toJson(createAnchorCases(anchored))],
  ])
}

const golden = { signedAt: GOLDEN_SIGNED_AT, treeSize: 5, leafIndex: 2, batchSequence: 3 }

function toGivenAnchor({ size, paths }: PublishedAnchor): ExpectedAnchored['anchor'] {
  return { contract: LOG_WITNESS, id: LOG_ID, size, path: paths[goldenIndex] ?? [] }
}

function createVectors({ anchors }: Anchored): AnchorVectors {
  return {
    ids: [
      [OWNER, ORIGIN],
      [LOG_WITNESS, ORIGIN],
      [OWNER, 'log.example/enclave-b'],
      [OWNER, 'log.example/schlüssel'],
    ].map(([owner = '', origin = '']) => {
      const originHash = sha256(new TextEncoder().encode(origin))
      return { owner, origin, originHash: toHex(originHash), id: toLogId(owner as `0x${string}`, originHash) }
    }),
    ...createEventVectors(anchors[1]),
    anchors: anchors.map(({ bytes, partBytes, size, root, paths, block }) => ({
      block: decode(bytes),
      blockHash: toHex(sha256(bytes)),
      parts: partBytes.map(decode),
      size,
      root,
      // The last anchor lists a late receipt, of entry 5.
      paths: Object.fromEntries(
        [...paths.entries()].filter(([index]) => index >= block.from || (index === 5 && block.from === 13)),
      ),
    })),
    rejected: createRejected(anchors),
  }
}

function createEventVectors(anchor: PublishedAnchor): Pick<AnchorVectors, 'events' | 'malformedEvents'> {
  const { topics, data } = createCheckpointEvent(anchor)
  const [topic = '', id = '', size = ''] = topics
  const blockHash = toHex(sha256(anchor.bytes))
  const event = (name: string, number: number, changes: { topics?: string[]; data?: string } = {}) => {
    const own = { topics: [topic, id, toSizeTopic(number)], data }
    return { name, ...own, ...changes, id, size: number, root: `0x${anchor.root}`, blockHash: `0x${blockHash}` }
  }
  const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`
  const malformed = (name: string, changes: { topics?: string[]; data?: string }) => ({
    name,
    topics: [...topics],
    data,
    ...changes,
  })
  return {
    events: [
      event('the event of the second anchor', anchor.size),
      event('size 1', 1),
      event('size 2^53 - 1', Number.MAX_SAFE_INTEGER),
      event('upper-case digits', anchor.size, { topics: topics.map(upper), data: upper(data) }),
    ],
    malformedEvents: [
      malformed('no topics', { topics: [] }),
      malformed('another event', { topics: [`0x${'11'.repeat(32)}`, id, size] }),
      malformed('two topics', { topics: [topic, id] }),
      malformed('four topics', { topics: [topic, id, size, size] }),
      malformed('an id of 31 bytes', { topics: [topic, id.slice(0, -2), size] }),
      malformed('a size of 8 bytes', { topics: [topic, id, '0x000000000000000d'] }),
      malformed('size 2^53', { topics: [topic, id, `0x${(2n ** 53n).toString(16).padStart(64, '0')}`] }),
      malformed('a size above 64 bits', { topics: [topic, id, `0x${'ff'.repeat(32)}`] }),
      malformed('no data', { data: '0x' }),
      malformed('one word of data', { data: data.slice(0, 66) }),
      malformed('one byte of data too few', { data: data.slice(0, -2) }),
      malformed('one byte of data too many', { data: `${data}00` }),
      malformed('three words of data', { data: `${data}${'00'.repeat(32)}` }),
      malformed('data that is not hex', { data: `${data.slice(0, -1)}g` }),
      malformed('data without 0x', { data: data.slice(2) }),
    ],
  }
}

function createRejected(anchors: Anchored['anchors']): RejectedAnchor[] {
  const [first, second, late] = anchors
  const reject = (
    name: string,
    reason: string,
    block: string | Uint8Array,
    parts: readonly (string | Uint8Array)[] = second.partBytes,
  ): RejectedAnchor => {
    const text = (one: string | Uint8Array) => (typeof one === 'string' ? one : decode(one))
    return { name, reason, block: text(block), parts: parts.map(text) }
  }
  /** A changed block of the second anchor. */
  const inBlock = (name: string, reason: string, changes: object) =>
    reject(name, reason, toCanonicalJson({ ...second.block, ...changes }))
  /** Changed parts of an anchor. The block names them by their new CIDs. */
  const inParts = (name: string, reason: string, change: (parts: Json[]) => void, anchor: PublishedAnchor = second) => {
    const parts = structuredClone(anchor.parts) as Json[]
    change(parts)
    const bytes = parts.map((part) => toCanonicalJson(part))
    return reject(name, reason, toCanonicalJson({ ...anchor.block, parts: bytes.map(toCid) }), bytes)
  }
  const schema = 'it must match the schema'
  const canonical = 'it must be canonical JSON'
  const leads = 'the entries, appended to the frontier, must lead to the root of the checkpoint'
  const count = 'the entries must be those from `from` to the size minus 1'
  const paths = 'a receipt has a path exactly if its index is below `from`'
  const [partA = new Uint8Array(), partB = new Uint8Array()] = second.partBytes
  const flip = (text: string) => (text.startsWith('0') ? '1' : '0') + text.slice(1)
  const root = (anchor: PublishedAnchor) => Uint8Array.from(Buffer.from(anchor.root, 'hex'))
  const { frontier, checkpoint } = second.block
  return [
    inBlock('another version', schema, { version: 'countersign-anchor/2' }),
    inBlock('a member too many', schema, { note: '' }),
    inBlock('no parts', schema, { parts: [] }),
    inBlock('a hash of the frontier in upper case', schema, { frontier: frontier.map((one) => one.toUpperCase()) }),
    reject('white space in the block', canonical, decode(second.bytes).replace('{', '{ ')),
    reject('white space in a part', 'a part must match its CID', second.bytes, [
      decode(partA).replace('{', '{ '),
      partB,
    ]),
    reject('a part less than the block names', 'no part may be missing', second.bytes, [partA]),
    reject('a part more than the block names', 'there must be no other part', second.bytes, [partA, partB, partB]),
    reject('the parts in another order', 'a part must match its CID', second.bytes, [partB, partA]),
    reject(
      'the parts and their CIDs in another order',
      leads,
      toCanonicalJson({ ...second.block, parts: [toCid(partB), toCid(partA)] }),
      [partB, partA],
    ),
    inBlock('a start one entry earlier', count, { from: 3 }),
    inBlock('a start one entry later', count, { from: 5 }),
    inBlock('no frontier', 'the frontier has one hash for each set bit of `from`', { frontier: [] }),
    inBlock('a frontier with one hash too many', 'the frontier has one hash for each set bit of `from`', {
      frontier: [...frontier, ...frontier],
    }),
    inBlock('another frontier', leads, { frontier: frontier.map(flip) }),
    inBlock('the checkpoint of another size', count, { checkpoint: late.block.checkpoint }),
    inBlock('the checkpoint of another root', leads, {
      checkpoint: signCheckpoint({ size: second.size, root: root(first) }),
    }),
    inBlock('a checkpoint with an extension line', 'the checkpoint has no extension lines', {
      checkpoint: signCheckpoint({ size: second.size, root: root(second), extensions: ['more'] }),
    }),
    inBlock('a checkpoint without signatures', 'the checkpoint must be a note', {
      checkpoint: `${checkpoint.split('\n\n')[0]}\n`,
    }),
    inParts('a changed entry', leads, ([part]) => Object.assign(part, { entries: flip(part.entries ?? '') })),
    inParts('an entry less', count, ([part]) => Object.assign(part, { entries: part.entries.slice(114) })),
    inParts('an entry more', count, ([part]) =>
      Object.assign(part, { entries: part.entries + part.entries.slice(0, 114) }),
    ),
    inParts('an entry of 56 bytes', schema, ([part]) => Object.assign(part, { entries: part.entries.slice(2) })),
    inParts('entries in upper case', schema, ([part]) => Object.assign(part, { entries: part.entries.toUpperCase() })),
    inParts('a part of another version', schema, ([part]) =>
      Object.assign(part, { version: 'countersign-anchor-part/2' }),
    ),
    inParts('a receipt without a CID', schema, ([part]) => delete part.receipts[0]?.cid),
    inParts('a wallet in upper case', schema, ([part]) =>
      Object.assign(part.receipts[0], { wallet: `0x${'AB'.repeat(20)}` }),
    ),
    inParts('a receipt of an entry after the last', 'the index must be below the size', ([part]) =>
      Object.assign(part.receipts[0], { index: second.size }),
    ),
    inParts('a receipt of an earlier entry without a path', paths, ([part]) =>
      Object.assign(part.receipts[0], { index: 3 }),
    ),
    inParts('a path for an entry of this anchor', paths, ([part]) =>
      Object.assign(part.receipts[0], { path: second.paths[goldenIndex] }),
    ),
    inParts('an empty path for an entry of this anchor', paths, ([part]) =>
      Object.assign(part.receipts[0], { path: [] }),
    ),
    inParts('a late receipt without its path', paths, ([, part]) => delete part.receipts[0]?.path, late),
  ]
}

// biome-ignore lint/suspicious/noExplicitAny: changed JSON has no type.
type Json = any

const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

if (import.meta.main) {
  for (const [path, content] of await createAnchorFiles()) {
    const file = new URL(path, import.meta.url)
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, content)
  }
}
