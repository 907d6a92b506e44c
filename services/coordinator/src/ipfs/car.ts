import { CID } from 'multiformats/cid'

/**
 * A CARv1 of one block, which is its root (ipld.io/specs/transport/car/carv1): the length of the header, the header in
 * DAG-CBOR, `{ roots: [CID], version: 1 }`, the length of the section, CID, bytes. The CID is of the one kind that
 * this project has, 36 bytes long, so all of the header but those is fixed.
 */
export function toCar(cid: string, block: Uint8Array): Uint8Array<ArrayBuffer> {
  const id = CID.parse(cid).bytes
  // map(2), "roots", array(1), tag 42, bytes(37), the prefix 0x00 of a CID in CBOR
  const beforeRoot = Buffer.from('a265726f6f747381d82a582500', 'hex')
  // "version", 1
  const afterRoot = Buffer.from('6776657273696f6e01', 'hex')
  const header = Buffer.concat([beforeRoot, id, afterRoot])
  return Buffer.concat([toVarint(header.length), header, toVarint(id.length + block.length), id, block])
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
