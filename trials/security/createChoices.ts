import { createRandom } from '@countersign/testing'

export type Choices = {
  /** A whole number from 0 to `below` − 1. */
  below(below: number): number
  pick<Item>(items: readonly Item[]): Item
  shuffle<Item>(items: readonly Item[]): Item[]
  /** Letters and digits of base64url. */
  text(length: number): string
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The same seed tries the same things again. Not for secrets. */
export function createChoices(seed: number): Choices {
  const next = createRandom(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    pick<Item>(items: readonly Item[]): Item {
      if (items.length === 0) throw new RangeError('nothing to pick from')
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
