import {
  appendLeaves,
  createInclusionProof,
  createLeafReader,
  createNoteKey,
  emptyFrontier,
  encodeLogEntry,
  formatCheckpoint,
  signNote,
} from '@countersign/log'
import { concatBytes, fromHex, hashTree, hashTreeLeaf, toCanonicalJson, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { toCid } from '../cid.ts'
import { type AnchoredReceipt, createAnchor, readAnchor } from './anchorBlock.ts'

const origin = 'log.example/enclave-a'
const toEntry = (index: number) =>
  encodeLogEntry({
    kind: 'signature',
    keyId: 'ab'.repeat(16),
    leaf: toHex(hashTreeLeaf(Uint8Array.of(index, index >> 8))),
    timeMs: index,
  })
const entries = Array.from({ length: 1_500 }, (_, index) => toEntry(index))
const leaves = entries.map(hashTreeLeaf)
const key = createNoteKey({
  name: origin,
  type: 'ed25519',
  publicKey: fromHex('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'),
})
/** Nothing here verifies the signature. */
const toNote = (size: number) =>
  signNote(formatCheckpoint({ origin, size, root: hashTree(leaves.slice(0, size)), extensions: [] }), [
    { key, sign: () => new Uint8Array(64) },
  ])
const toReceipt = (index: number): AnchoredReceipt => ({
  index,
  wallet: `0x${'11'.repeat(20)}`,
  txHash: `0x${toHex(hashTreeLeaf(Uint8Array.of(7, index)))}`,
  cid: toCid(Uint8Array.of(index)),
})

function create(from: number, size: number, receipts: readonly AnchoredReceipt[] = []) {
  return createAnchor({
    checkpoint: toNote(size),
    frontier: appendLeaves(emptyFrontier, leaves.slice(0, from)),
    entries: concatBytes(...entries.slice(from, size)),
    receipts,
  })
}

const read = ({ block, parts }: ReturnType<typeof create>) =>
  readAnchor(
    block.bytes,
    parts.map(({ bytes }) => bytes),
  )

describe('an anchor', () => {
  test.each([
    [0, 1],
    [0, 1_500],
    [1, 2],
    [3, 8],
    [6, 7],
    [640, 1_280],
    [777, 1_499],
    [1_024, 1_025],
  ])('from %d to %d gives the path of each of its entries', (from, size) => {
    const anchor = read(create(from, size))
    expect([anchor.origin, anchor.from, anchor.size]).toEqual([origin, from, size])
    const readNode = createLeafReader(leaves.slice(0, size))
    for (let index = from; index < size; index += 1 + Math.floor((size - from) / 50)) {
      expect(anchor.toPath(index)).toEqual(createInclusionProof(readNode, { index, size }))
    }
  })

  test('lists receipts of its entries, and of earlier ones with their paths', () => {
    const path = createInclusionProof(createLeafReader(leaves.slice(0, 1_300)), { index: 5, size: 1_300 })
    const receipts = [toReceipt(1_200), { ...toReceipt(5), path: path.map(toHex) }, toReceipt(600)]
    const anchor = read(create(600, 1_300, receipts))
    expect(anchor.receipts.map(({ index }) => index)).toEqual([600, 1_200, 5])
    expect(anchor.toPath(5)).toEqual(path)
    expect(() => anchor.toPath(6)).toThrow(expect.objectContaining({ code: 'anchor_invalid' }))
  })

  test('gives all its paths in time', () => {
    const size = 8_000
    const many = Array.from({ length: size }, (_, index) => toEntry(index))
    const root = hashTree(many.map(hashTreeLeaf))
    const { block, parts } = createAnchor({
      checkpoint: signNote(formatCheckpoint({ origin, size, root, extensions: [] }), [
        { key, sign: () => new Uint8Array(64) },
      ]),
      frontier: emptyFrontier,
      entries: concatBytes(...many),
      receipts: [],
    })
    const anchor = read({ block, parts })
    for (let index = 0; index < size; index++) expect(anchor.toPath(index).length).toBeGreaterThan(9)
  })

  test('fits the size of blocks with a receipt for each entry', () => {
    const size = 1_500
    const { parts } = create(
      0,
      size,
      Array.from({ length: size }, (_, index) => toReceipt(index)),
    )
    expect(parts).toHaveLength(3)
  })

  const { block, parts } = create(600, 1_300, [toReceipt(700)])
  const change = (bytes: Uint8Array, changes: object) =>
    toCanonicalJson({ ...JSON.parse(new TextDecoder().decode(bytes)), ...changes })
  const bytesOf = parts.map(({ bytes }) => bytes)

  test.each<[string, Uint8Array, readonly Uint8Array[]]>([
    ['a missing part', block.bytes, bytesOf.slice(1)],
    ['parts in another order', block.bytes, bytesOf.toReversed()],
    [
      'a part of another anchor',
      block.bytes,
      [bytesOf[0] as Uint8Array, create(600, 1_299).parts[1]?.bytes as Uint8Array],
    ],
    ['another start', change(block.bytes, { from: 599 }), bytesOf],
    [
      'another frontier',
      change(block.bytes, { frontier: appendLeaves(emptyFrontier, leaves.slice(1, 601)).hashes.map(toHex) }),
      bytesOf,
    ],
    ['a short frontier', change(block.bytes, { frontier: [] }), bytesOf],
    ['another checkpoint', change(block.bytes, { checkpoint: toNote(1_299) }), bytesOf],
  ])('is rejected with %s', (_, bytes, given) => {
    expect(() => readAnchor(bytes, given)).toThrow(expect.objectContaining({ code: 'anchor_invalid' }))
  })

  test.each<[string, AnchoredReceipt]>([
    ['an earlier receipt without a path', toReceipt(599)],
    ['a receipt of a later entry', toReceipt(1_300)],
    ['a path for an entry of its own', { ...toReceipt(600), path: [] }],
  ])('is not created with %s', (_, receipt) => {
    expect(() => create(600, 1_300, [receipt])).toThrow(expect.objectContaining({ code: 'anchor_invalid' }))
  })
})
