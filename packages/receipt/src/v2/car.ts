import { concatBytes, equalBytes, fromHex, MAX_BLOCK_BYTES } from '@countersign/protocol'
import { parseReceipt, peekVersion } from '../canonicalCodec.ts'
import { fromCidHash, toCid, toCidHash } from '../cid.ts'
import { ReceiptError } from '../errors.ts'
import { ATTESTATION_V2, type GivenBlocks, parseBlock } from './blocks.ts'

/*
 * CAR version 1 (https://ipld.io/specs/transport/car/carv1/) for blocks with our only kind of CID. With one root of that kind, the
 * header in DAG-CBOR has a fixed form, so it is compared and not decoded.
 */

/** `01 55 12 20`: CID version 1, codec raw, SHA-256, 32 bytes. */
const CID_HEAD = Uint8Array.of(0x01, 0x55, 0x12, 0x20)
const CID_BYTES = CID_HEAD.length + 32
/** `{"roots": [CID], "version": 1}` up to the CID: a map of two, `roots`, a list of one, tag 42, 37 bytes, of which the first is 0. */
const HEADER_HEAD = fromHex('3aa265726f6f747381d82a582500')
/** `"version": 1`. */
const HEADER_TAIL = fromHex('6776657273696f6e01')
/** The fixed length of a header. */
export const CAR_HEADER_BYTES = HEADER_HEAD.length + CID_BYTES + HEADER_TAIL.length
/** A receipt has five blocks, or six with a policy. */
const MAX_CAR_BLOCKS = 16

/** The largest file with the blocks of a receipt. */
export const MAX_CAR_BYTES = 128 + MAX_CAR_BLOCKS * (MAX_BLOCK_BYTES + 64)

/** Encodes blocks as one file. The first is its root. */
export function encodeCar(blocks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const cids = blocks.map(toCid)
  const [root] = cids
  if (root === undefined || cids.length > MAX_CAR_BLOCKS) throw malformed(`expected 1 to ${MAX_CAR_BLOCKS} blocks`)
  if (new Set(cids).size !== cids.length) throw malformed('a block twice')
  const sections = blocks.map((block, index) => {
    assertBlockSize(block.length)
    return encodeCarSection(cids[index] as string, block)
  })
  return concatBytes(encodeCarHeader(root), ...sections)
}

/**
 * The start of a file that is written in pieces. Its length is fixed, so it can be overwritten when the root is known.
 *
 * @example
 * concatBytes(encodeCarHeader(cid), encodeCarSection(cid, block))
 */
export function encodeCarHeader(root: string): Uint8Array<ArrayBuffer> {
  return concatBytes(HEADER_HEAD, toCidBytes(root), HEADER_TAIL)
}

/** A block in a file that is written in pieces. Doesn't check the block's hash and size. */
export function encodeCarSection(cid: string, block: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes(encodeVarint(CID_BYTES + block.length), toCidBytes(cid), block)
}

/** The blocks of a file by their CIDs, in order, with their hashes checked; and the root's CID. */
export function parseCar(bytes: Uint8Array): { root: string; blocks: ReadonlyMap<string, Uint8Array> } {
  if (bytes.length > MAX_CAR_BYTES) throw malformed(`more than ${MAX_CAR_BYTES} bytes`)
  const root = parseCarHeader(bytes)
  const blocks = new Map<string, Uint8Array>()
  for (let offset = CAR_HEADER_BYTES; offset < bytes.length; ) {
    const { cid, block, end } = parseCarSection(bytes, offset)
    if (blocks.has(cid)) throw malformed('a block twice')
    if (blocks.size === MAX_CAR_BLOCKS) throw malformed(`more than ${MAX_CAR_BLOCKS} blocks`)
    blocks.set(cid, block)
    offset = end
  }
  if (!blocks.has(root)) throw mismatch('the root is not among the blocks')
  return { root, blocks }
}

/** The root of a file with this header. */
export function parseCarHeader(bytes: Uint8Array): string {
  const hashStart = HEADER_HEAD.length + CID_HEAD.length
  const tailStart = HEADER_HEAD.length + CID_BYTES
  const isHeader =
    equalBytes(bytes.subarray(0, hashStart), concatBytes(HEADER_HEAD, CID_HEAD)) &&
    equalBytes(bytes.subarray(tailStart, CAR_HEADER_BYTES), HEADER_TAIL)
  if (!isHeader) throw malformed('not a CAR header with one root of a receipt')
  return fromCidHash(bytes.subarray(hashStart, tailStart))
}

/**
 * The block of the section at `start`, with its hash checked, and the end of the section.
 *
 * @example
 * const { cid, block, end } = parseCarSection(bytes, CAR_HEADER_BYTES)
 */
export function parseCarSection(bytes: Uint8Array, start = 0): { cid: string; block: Uint8Array; end: number } {
  const { cidStart, end } = readFrame(bytes, start)
  if (end > bytes.length) throw malformed('cut short')
  const blockStart = cidStart + CID_BYTES
  const block = bytes.slice(blockStart, end)
  const cid = toCid(block)
  // A changed block, or an unsupported kind of CID.
  if (!equalBytes(bytes.subarray(cidStart, blockStart), toCidBytes(cid))) {
    throw mismatch('a block does not match its CID')
  }
  return { cid, block, end }
}

/** The length of the section that starts with these bytes, including its prefix. The first three bytes are enough. */
export function measureCarSection(bytes: Uint8Array): number {
  return readFrame(bytes, 0).end
}

/** The start of a section's CID, and the end of its block. */
function readFrame(bytes: Uint8Array, start: number): { cidStart: number; end: number } {
  const { value: length, end: cidStart } = readVarint(bytes, start)
  assertBlockSize(length - CID_BYTES)
  return { cidStart, end: cidStart + length }
}

/** Reads an unsigned varint in canonical form. A section has at most the length of a block with its CID, so three bytes are enough. */
function readVarint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0
  for (let index = 0; index < 3; index++) {
    const byte = bytes[start + index]
    if (byte === undefined) throw malformed('cut short')
    value += (byte & 0x7f) << (7 * index)
    if (byte < 0x80) {
      if (index > 0 && byte === 0) throw malformed('a length is not in canonical form')
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
  if (length < 1 || length > MAX_BLOCK_BYTES) throw malformed(`expected a block of 1 to ${MAX_BLOCK_BYTES} bytes`)
}

function toCidBytes(cid: string): Uint8Array {
  const hash = toCidHash(cid)
  if (hash === undefined) throw malformed('not a CID of a receipt or block')
  return concatBytes(CID_HEAD, fromHex(hash))
}

/** The framing is valid, so the content was changed. */
function mismatch(details: string) {
  return new ReceiptError('car_mismatch', 'the blocks of the CAR do not match', { details })
}

function malformed(details: string) {
  return new ReceiptError('car_malformed', 'not a CAR of a receipt', { details })
}

/** A receipt with its blocks, in the form for `checkReceipt`. */
export type ReceiptFiles = { bytes: Uint8Array; collateral?: Uint8Array; blocks: GivenBlocks }

/** Encodes all blocks of a receipt as one file: the receipt first, then the blocks that it names. */
export function encodeReceiptCar({ bytes, collateral, blocks }: ReceiptFiles): Uint8Array<ArrayBuffer> {
  const { release, coordinator, batch, policy } = blocks
  return encodeCar([bytes, release, coordinator, batch, collateral, policy].filter((block) => block !== undefined))
}

/** Parses such a file. Rejects blocks that it doesn't refer to. A missing block is left out, and its step reports that. */
export function parseReceiptCar(car: Uint8Array): ReceiptFiles {
  const { root, blocks } = parseCar(car)
  const bytes = blocks.get(root) as Uint8Array
  const named = nameBlocks(bytes, blocks)
  const found = Object.values(named).filter((cid) => cid !== undefined && blocks.has(cid))
  if (new Set(found).size !== blocks.size - 1) {
    throw mismatch('a block that the receipt does not name')
  }
  const pick = <Name extends string>(name: Name, cid: string | undefined) => {
    const block = cid === undefined ? undefined : blocks.get(cid)
    return block === undefined ? {} : ({ [name]: block } as { [name in Name]: Uint8Array })
  }
  return {
    bytes,
    ...pick('collateral', named.collateral),
    blocks: {
      ...pick('release', named.release),
      ...pick('batch', named.batch),
      ...pick('coordinator', named.coordinator),
      ...pick('policy', named.policy),
    },
  }
}

/** The CIDs that a receipt names, directly and in its readable blocks. */
function nameBlocks(
  bytes: Uint8Array,
  blocks: ReadonlyMap<string, Uint8Array>,
): { [name in keyof GivenBlocks | 'collateral']?: string } {
  if (peekVersion(bytes) !== ATTESTATION_V2) return { collateral: parseReceipt(bytes).signer.collateral }
  const { signer, coordinator, policy } = parseBlock('attestation', bytes)
  const names = { release: coordinator.release, batch: signer.batch, ...(policy && { policy }) }
  const release = blocks.get(coordinator.release)
  if (release === undefined) return names
  const { collateral, coordinator: attested } = parseBlock('release', release)
  return { ...names, collateral, coordinator: attested }
}
