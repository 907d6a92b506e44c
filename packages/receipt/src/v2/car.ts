import { concatBytes, equalBytes, fromHex, MAX_BLOCK_BYTES } from '@countersign/protocol'
import { ReceiptError } from '../errors.ts'
import { toCid, toCidHash } from '../v1/cid.ts'

/*
 * CAR, version 1 (https://ipld.io/specs/transport/car/carv1/), of blocks that have CIDs of our one kind. With one root of that kind
 * the header has one form in DAG-CBOR, so that it is compared and not decoded.
 */

/** `01 55 12 20`: CID version 1, codec raw, SHA-256, 32 bytes. */
const CID_HEAD = Uint8Array.of(0x01, 0x55, 0x12, 0x20)
const CID_BYTES = CID_HEAD.length + 32
/** `{"roots": [CID], "version": 1}` up to the CID: a map of two, `roots`, a list of one, tag 42, 37 bytes, of which the first is 0. */
const HEADER_HEAD = fromHex('3aa265726f6f747381d82a582500')
/** `"version": 1`. */
const HEADER_TAIL = fromHex('6776657273696f6e01')
/** A receipt has five blocks, with a policy six. */
const MAX_CAR_BLOCKS = 16

/** The largest file with the blocks of a receipt. */
export const MAX_CAR_BYTES = 128 + MAX_CAR_BLOCKS * (MAX_BLOCK_BYTES + 64)

/**
 * Blocks as one file. The first is its root.
 *
 * @example
 * encodeCar([attestation, release, coordinator, batch, collateral])
 */
export function encodeCar(blocks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const cids = blocks.map(toCid)
  const [root] = cids
  if (root === undefined || cids.length > MAX_CAR_BLOCKS) throw malformed(`not 1 to ${MAX_CAR_BLOCKS} blocks`)
  if (new Set(cids).size !== cids.length) throw malformed('a block twice')
  const sections = blocks.map((block, index) => {
    assertBlockSize(block.length)
    return concatBytes(encodeVarint(CID_BYTES + block.length), toCidBytes(cids[index] as string), block)
  })
  return concatBytes(HEADER_HEAD, toCidBytes(root), HEADER_TAIL, ...sections)
}

/** The blocks of a file by their CIDs, in its order, each hashed; and which of them is the root. */
export function parseCar(bytes: Uint8Array): { root: string; blocks: ReadonlyMap<string, Uint8Array> } {
  if (bytes.length > MAX_CAR_BYTES) throw malformed(`more than ${MAX_CAR_BYTES} bytes`)
  const headEnd = HEADER_HEAD.length
  const tailStart = headEnd + CID_BYTES
  const start = tailStart + HEADER_TAIL.length
  const isHeader =
    equalBytes(bytes.subarray(0, headEnd), HEADER_HEAD) && equalBytes(bytes.subarray(tailStart, start), HEADER_TAIL)
  if (!isHeader) throw malformed('not a header with one root of ours')
  const rootBytes = bytes.subarray(headEnd, tailStart)
  const blocks = new Map<string, Uint8Array>()
  let root: string | undefined
  for (let offset = start; offset < bytes.length; ) {
    const { value: length, end: sectionStart } = readVarint(bytes, offset)
    const end = sectionStart + length
    if (end > bytes.length) throw malformed('cut short')
    const cidBytes = bytes.subarray(sectionStart, sectionStart + CID_BYTES)
    const block = bytes.slice(sectionStart + CID_BYTES, end)
    assertBlockSize(length - CID_BYTES)
    const cid = toCid(block)
    // A changed block, or a CID of another kind.
    if (!equalBytes(cidBytes, toCidBytes(cid))) throw malformed('a block is not the one that its CID names')
    if (blocks.has(cid)) throw malformed('a block twice')
    if (blocks.size === MAX_CAR_BLOCKS) throw malformed(`more than ${MAX_CAR_BLOCKS} blocks`)
    if (equalBytes(cidBytes, rootBytes)) root = cid
    blocks.set(cid, block)
    offset = end
  }
  if (root === undefined) throw malformed('the root is not among the blocks')
  return { root, blocks }
}

/** An unsigned varint in its one spelling. No section is longer than a block with its CID, so three bytes are enough. */
function readVarint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0
  for (let index = 0; index < 3; index++) {
    const byte = bytes[start + index]
    if (byte === undefined) throw malformed('cut short')
    value += (byte & 0x7f) << (7 * index)
    if (byte < 0x80) {
      if (index > 0 && byte === 0) throw malformed('another spelling of a length')
      return { value, end: start + index + 1 }
    }
  }
  throw malformed('a section is too long')
}

function encodeVarint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Uint8Array.of(...bytes, rest)
}

function assertBlockSize(length: number): void {
  if (length < 1 || length > MAX_BLOCK_BYTES) throw malformed(`a block is not of 1 to ${MAX_BLOCK_BYTES} bytes`)
}

function toCidBytes(cid: string): Uint8Array {
  const hash = toCidHash(cid)
  if (hash === undefined) throw malformed('not a CID of ours')
  return concatBytes(CID_HEAD, fromHex(hash))
}

function malformed(details: string) {
  return new ReceiptError('car_malformed', 'not a CAR of a receipt', { details })
}
