import { hash } from 'node:crypto'
import { isHex } from '@countersign/protocol'

/*
 * Trees of RFC 6962 §2.1 whose hashes are hex, by Node's SHA-256. The protocol's own are of bytes, for browsers too, and take twice the time or
 * more: this is for what is done for each signature of a user.
 */

/** SHA-256(0x00 ‖ entry). */
export function hashLeaf(entry: string): string {
  return hash('sha256', Buffer.from(`00${entry}`, 'hex'), 'hex')
}

const NODE = Buffer.alloc(65, 1)

/** SHA-256(0x01 ‖ left ‖ right). */
export function hashNode(left: string, right: string): string {
  const written = NODE.write(left, 1, 'hex') + NODE.write(right, 33, 'hex')
  // What is no hex would leave the bytes of another node there.
  if (written !== 64 || left.length + right.length !== 128) throw new Error('a hash is not hex of 32 bytes')
  return hash('sha256', NODE, 'hex')
}

/** A tree that grows, known by the roots of its complete subtrees alone. */
export type TreeEdge = {
  readonly size: number
  append(leaf: string): void
  computeRoot(): string
  /** The roots of the complete subtrees, the largest first. */
  readonly hashes: readonly string[]
}

/** Goes on from a tree of this size. `onNode` is told of each node that is complete from here on, leaves among them. */
export function createTreeEdge(
  start: { size: number; hashes: readonly string[] },
  onNode: (level: number, index: number, hash: string) => void = () => {},
): TreeEdge {
  let { size } = start
  const hashes = [...start.hashes]
  return {
    hashes,
    get size() {
      return size
    },
    append(leaf) {
      if (!isHex(leaf, 32)) throw new Error('a leaf is not hex of 32 bytes')
      let node = leaf
      let [level, index] = [0, size]
      onNode(level, index, node)
      // Each subtree of the same height on the left is completed by what has come.
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

const joinLeft = (right: string, left: string) => hashNode(left, right)
