import { hashTreeNode } from '@countersign/protocol/core'

type Roots = { older: Uint8Array; newer: Uint8Array }

/**
 * A consistency proof between two trees of any sizes, whose complete subtrees have arbitrary hashes. Follows the definition of the proof
 * (RFC 9162 §2.1.4.1) rather than the steps that verify it.
 */
export function createSyntheticProof(
  drawHash: () => Uint8Array,
  { oldSize, size }: { oldSize: number; size: number },
): Roots & { proof: Uint8Array[] } {
  const proof: Uint8Array[] = []
  const draw = () => {
    const hash = drawHash()
    proof.push(hash)
    return hash
  }
  const build = (older: number, newer: number, isWhole: boolean): Roots => {
    if (older === newer) {
      const hash = isWhole ? drawHash() : draw()
      return { older: hash, newer: hash }
    }
    let left = 1
    while (2 * left < newer) left *= 2
    if (older <= left) {
      const roots = build(older, left, isWhole)
      return { ...roots, newer: hashTreeNode(roots.newer, draw()) }
    }
    const roots = build(older - left, newer - left, false)
    const hash = draw()
    return { older: hashTreeNode(hash, roots.older), newer: hashTreeNode(hash, roots.newer) }
  }
  return { ...build(oldSize, size, true), proof }
}
