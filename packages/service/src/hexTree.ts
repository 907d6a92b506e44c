import { hash } from 'node:crypto'
import { isHex } from '@countersign/protocol/core'

/*
 * Trees of RFC 6962 §2.1 with hashes in hex, computed with Node's SHA-256. For the work per signature: the protocol's trees of bytes also run
 * in
 * browsers, and take at least twice the time.
 */

/** SHA-256(0x00 ‖ entry). */
export function hashLeaf(entry: string): string {
  const preimage = Buffer.from(`00${entry}`, 'hex')
  // Node parses hex up to the first other character.
  if (2 * preimage.length !== entry.length + 2) throw new Error('an entry is not hex')
  return hash('sha256', preimage, 'hex')
}

const NODE = Buffer.alloc(65, 1)
const isHash = (value: unknown) => isHex(value, 32)

/** SHA-256(0x01 ‖ left ‖ right). */
export function hashNode(left: string, right: string): string {
  // Invalid or short hex would leave bytes of an earlier node in the buffer.
  if (!isHash(left) || !isHash(right)) throw new Error('a hash is not hex of 32 bytes')
  NODE.write(left, 1, 'hex')
  NODE.write(right, 33, 'hex')
  return hash('sha256', NODE, 'hex')
}

/** A growing tree, stored as the roots of its complete subtrees. */
export type TreeEdge = {
  readonly size: number
  append(leaf: string): void
  computeRoot(): string
  /** The roots of the complete subtrees, the largest first. */
  readonly hashes: readonly string[]
}

/** Continues a tree of this size. `onNode` is called for each node that becomes complete, including leaves. */
export function createTreeEdge(
  start: { size: number; hashes: readonly string[] },
  onNode: (level: number, index: number, hash: string) => void = () => {},
): TreeEdge {
  let { size } = start
  const hashes = [...start.hashes]
  if (hashes.length !== countBits(size)) throw new Error('a tree of this size has another number of hashes')
  return {
    hashes,
    get size() {
      return size
    },
    append(leaf) {
      if (!isHash(leaf)) throw new Error('a leaf is not hex of 32 bytes')
      if (size === Number.MAX_SAFE_INTEGER) throw new Error('the tree is full')
      let node = leaf
      let [level, index] = [0, size]
      onNode(level, index, node)
      // Merges subtrees of equal height.
      while (index % 2 === 1) {
        node = hashNode(hashes.pop() as string, node)
        level += 1
        index = (index - 1) / 2
        onNode(level, index, node)
      }
      hashes.push(node)
      size += 1
    },
    computeRoot: () => (hashes.length === 0 ? hash('sha256', '', 'hex') : hashes.toReversed().reduce(joinLeft)),
  }
}

/** Works for more than 32 bits. */
function countBits(size: number): number {
  return size.toString(2).replaceAll('0', '').length
}

const joinLeft = (right: string, left: string) => hashNode(left, right)
