import { hash } from 'node:crypto'

/** Deterministic: the same seed gives the same sequence. */
export type Random = {
  /** From 0 to `end` - 1. */
  below(end: number): number
  pick<Item>(items: readonly Item[]): Item
  bytes(length: number): Uint8Array
  shuffle<Item>(items: readonly Item[]): Item[]
}

export function createRandom(seed: number): Random {
  let block = new Uint8Array()
  let blocks = 0
  let used = 0
  function byte(): number {
    if (used === block.length) {
      block = new Uint8Array(hash('sha512', `${seed} ${blocks}`, 'buffer'))
      blocks += 1
      used = 0
    }
    used += 1
    return block[used - 1] as number
  }
  const below = (end: number) => ((byte() << 16) | (byte() << 8) | byte()) % end
  return {
    below,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    bytes: (length) => Uint8Array.from({ length }, byte),
    shuffle(items) {
      const left = [...items]
      return items.map(() => left.splice(below(left.length), 1)[0] as (typeof items)[number])
    },
  }
}
