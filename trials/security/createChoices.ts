import { createRandom } from '@countersign/testing'

export type Choices = {
  /** A whole number from 0 to `below` − 1. */
  below(below: number): number
  pick<Item>(items: readonly Item[]): Item
  shuffle<Item>(items: readonly Item[]): Item[]
  /** Random base64url characters. */
  text(length: number): string
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Seeded random choices. Not for secrets. */
export function createChoices(seed: number): Choices {
  const next = createRandom(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    pick<Item>(items: readonly Item[]): Item {
      if (items.length === 0) throw new RangeError('no items to pick from')
      return items[below(items.length)] as Item
    },
    shuffle<Item>(items: readonly Item[]): Item[] {
      const shuffled = [...items]
      for (let index = shuffled.length - 1; index > 0; index--) {
        const other = below(index + 1)
        const [left, right] = [shuffled[index] as Item, shuffled[other] as Item]
        shuffled[index] = right
        shuffled[other] = left
      }
      return shuffled
    },
    text: (length) => Array.from({ length }, () => ALPHABET[below(ALPHABET.length)]).join(''),
  }
}
