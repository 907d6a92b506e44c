import { hashLeaf, hashNode } from './hexTree.ts'

/** A tree of RFC 6962 whose leaves may change. */
export type HexTable = {
  readonly size: number
  /** Replaces the state of a row, or adds the next row. */
  set(row: number, state: string): void
  /** 32 zero bytes for the empty table. */
  computeRoot(): string
  /** The audit path of a row, from its sibling up. */
  listPath(row: number): string[]
}

export const EMPTY_TABLE_ROOT = '00'.repeat(32)

/** States are hex. The hashes above changed rows are computed when they are needed, so loading a table costs two hashes for each row. */
export function createHexTable(): HexTable {
  /** By level, from the leaves up. The last node of a level without a sibling is also its own parent. */
  const levels: string[][] = [[]]
  let changed = new Set<number>()
  const getLevel = (level: number) => {
    levels[level] ??= []
    return levels[level]
  }
  const size = () => getLevel(0).length

  function update() {
    let indexes = changed
    changed = new Set()
    for (let level = 0; getLevel(level).length > 1; level += 1) {
      const parents = new Set<number>()
      for (const index of indexes) parents.add(Math.floor(index / 2))
      for (const index of parents) {
        const [left = '', right] = getLevel(level).slice(2 * index, 2 * index + 2)
        getLevel(level + 1)[index] = right === undefined ? left : hashNode(left, right)
      }
      indexes = parents
    }
  }

  return {
    get size() {
      return size()
    },
    set(row, state) {
      if (!Number.isSafeInteger(row) || row < 0 || row > size()) throw new Error('the table has no such row')
      getLevel(0)[row] = hashLeaf(state)
      changed.add(row)
    },
    computeRoot() {
      update()
      return levels.findLast((level) => level.length === 1)?.[0] ?? EMPTY_TABLE_ROOT
    },
    listPath(row) {
      if (row < 0 || row >= size()) throw new Error('the table has no such row')
      update()
      const path: string[] = []
      for (let [level, index] = [0, row]; getLevel(level).length > 1; level += 1) {
        const sibling = getLevel(level)[index % 2 === 0 ? index + 1 : index - 1]
        if (sibling !== undefined) path.push(sibling)
        index = Math.floor(index / 2)
      }
      return path
    },
  }
}
