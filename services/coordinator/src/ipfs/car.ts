import { CID } from 'multiformats/cid'

/*
 * CARv1 (ipld.io/specs/transport/car/carv1): the length of the header, the header in DAG-CBOR, `{ roots: [CID], version: 1 }`, then sections,
 * each with its length, CID and bytes. CIDs are of the one kind that this project has, 36 bytes long, so all of the header but those is fixed.
 */

/** map(2), "roots", array(1), tag 42, bytes(37), the prefix 0x00 of a CID in CBOR */
const BEFORE_ROOT = Buffer.from('a265726f6f747381d82a582500', 'hex')
/** "version", 1 */
const AFTER_ROOT = Buffer.from('6776657273696f6e01', 'hex')

/** A CAR of one block, which is its root. */
export function toCar(cid: string, block: Uint8Array): Uint8Array<ArrayBuffer> {
  return Buffer.concat([toCarHeader(cid), toCarSection(cid, block)])
}

/** Always as long, whatever the root. */
export function toCarHeader(root: string): Buffer<ArrayBuffer> {
  const header = Buffer.concat([BEFORE_ROOT, CID.parse(root).bytes, AFTER_ROOT])
  return Buffer.concat([toVarint(header.length), header])
}

export function toCarSection(cid: string, block: Uint8Array): Buffer<ArrayBuffer> {
  const id = CID.parse(cid).bytes
  return Buffer.concat([toVarint(id.length + block.length), id, block])
}

/** Unsigned LEB128: seven bits a byte, the lowest first. */
function toVarint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80)
    rest >>>= 7
  }
  return Uint8Array.from([...bytes, rest])
}
