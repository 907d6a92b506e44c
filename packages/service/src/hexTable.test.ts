import { createInclusionProof, createLeafReader } from '@countersign/log'
import { fromHex, hashTree, hashTreeLeaf, toHex } from '@countersign/protocol'
import { createRandom } from '@countersign/testing'
import { expect, test } from 'vitest'
import vectors from '../../log/vectors/log-v1.vectors.json' with { type: 'json' }
import { createHexTable } from './hexTable.ts'

test('equals a tree that is computed anew, after any changes', () => {
  const random = createRandom(7)
  const table = createHexTable()
  const states: string[] = []
  expect(table.computeRoot()).toBe('00'.repeat(32))
  for (let step = 0; step < 200; step++) {
    const row = random() < 0.5 ? states.length : Math.floor(random() * states.length)
    const state = Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0')
    states[row] = state
    table.set(row, state)
    // Several changes before a root, too.
    if (random() < 0.5) continue
    const leaves = states.map((one) => hashTreeLeaf(fromHex(one)))
    expect(table.computeRoot()).toBe(toHex(hashTree(leaves)))
    const index = Math.floor(random() * states.length)
    const path = createInclusionProof(createLeafReader(leaves), { index, size: states.length })
    expect(table.listPath(index)).toEqual(path.map(toHex))
  }
})

test('has the roots and paths of the vectors (log-v1 §5)', () => {
  const { states, roots } = vectors.table
  const table = createHexTable()
  for (const { rows, root, path } of roots) {
    if (rows > 0) table.set(rows - 1, states[rows - 1]?.bytes ?? '')
    expect([table.size, table.computeRoot()]).toEqual([rows, root])
    if (rows > 0) expect(table.listPath(rows - 1)).toEqual(path)
  }
})

test.each([-1, 1, 0.5, Number.NaN])('rejects row %s of an empty table', (row) => {
  expect(() => createHexTable().set(row, '00')).toThrow()
})
