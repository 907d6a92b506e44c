import {
  appendLeaves,
  createInclusionProof,
  createLeafReader,
  decodeLogEntry,
  emptyFrontier,
  hashLogEntry,
} from '@countersign/log'
import { fromHex, type LogRequest, toHex } from '@countersign/protocol'
import { createHexTable } from '@countersign/service/hexTable'
import { describe, expect, test } from 'vitest'
import {
  cosign,
  createOpenLog,
  createSignedItem,
  createTestLog,
  keyWorker,
  kindsOf,
  NOW,
  origins,
  release,
  sign,
  toLeaf,
  withCode,
  witnesses,
} from '../../test/statementLog.ts'

const [origin = ''] = origins
const toState = (name: string, spent = '00') => `${name.repeat(16)}${'00'.repeat(27)}${spent}`
const changes = [
  { row: 0, state: toState('a1') },
  { row: 1, state: toState('b2') },
  { row: 0, state: toState('a1', '01') },
]
const states = [toState('a1', '01'), toState('b2')]

function rootOf(rows: readonly string[]): string {
  const table = createHexTable()
  for (const [row, state] of rows.entries()) table.set(row, state)
  return table.computeRoot()
}

/** A log with these changes, and the start that continues it. */
async function createChanged() {
  const log = await createOpenLog()
  const { statementLog } = log
  statementLog.change(changes.slice(0, 2))
  await sign(log, [createSignedItem()])
  statementLog.change(changes.slice(2))
  await sign(log, [createSignedItem()])
  const { log: answer } = await statementLog.call({ from: 0 })
  const entries = answer?.entries ?? []
  const leaves = entries.map((entry) => hashLogEntry(decodeLogEntry(fromHex(entry))))
  const { hashes } = appendLeaves(emptyFrontier, leaves)
  const size = leaves.length
  const proof = createInclusionProof(createLeafReader(leaves), { index: size - 1, size })
  const table = { entry: entries.at(-1) ?? '', path: proof.slice(0, Math.log2(size & -size)).map(toHex) }
  const start = { origin, checkpoint: answer?.checkpoint ?? '', hashes: hashes.map(toHex), table }
  return { log, answer, entries, start }
}

test('the last entry of every checkpoint is the root of the table, with the changes that it covers', async () => {
  const { answer, entries } = await createChanged()
  const tables = entries.map((entry) => decodeLogEntry(fromHex(entry))).filter(({ kind }) => kind === 'table')
  expect(tables).toMatchObject([
    { rows: 0, root: '00'.repeat(32) },
    { rows: 2, root: rootOf([toState('a1'), toState('b2')]) },
    { rows: 2, root: rootOf(states) },
  ])
  expect(answer?.states).toEqual(changes)
})

test('repeats changes until their entry is cosigned', async () => {
  const { log, answer } = await createChanged()
  const { statementLog } = log
  expect((await statementLog.call({ from: 0 })).log?.states).toEqual(changes)
  await sign(log, [createSignedItem()])
  await release(statementLog, cosign(answer?.checkpoint ?? ''))
  expect((await statementLog.call({ from: 0 })).log?.states).toEqual([])
})

describe('a start', () => {
  test('continues with the states of the last entry', async () => {
    const { start, entries } = await createChanged()
    const given: unknown[] = []
    const startTable: typeof keyWorker.startTable = async (...call) => given.push(call) > 0
    const { statementLog } = createTestLog({ keyWorker: { ...keyWorker, startTable } })
    await statementLog.call({ states: { from: 0, rows: states.slice(0, 1) } })
    await statementLog.call({ states: { from: 1, rows: states.slice(1) } })
    const { log } = await statementLog.call({ start })
    expect(log?.from).toBe(entries.length)
    expect(given).toEqual([[origin, states]])
  })

  type Start = NonNullable<LogRequest['start']>
  test.each<[string, string, readonly string[], (start: Start) => object]>([
    ['without states', 'states_missing', [], (start) => start],
    ['with earlier states', 'log_refused', [toState('a1'), toState('b2')], (start) => start],
    ['with fewer states', 'states_missing', states.slice(0, 1), (start) => start],
    ['with more states', 'states_missing', [...states, toState('c3')], (start) => start],
    ['with states in another order', 'log_refused', states.toReversed(), (start) => start],
    ['without the last entry', 'log_refused', states, ({ table: _, ...start }) => start],
    [
      'with another entry',
      'log_refused',
      states,
      (start) => ({ ...start, table: { ...start.table, entry: '04'.padEnd(114, '0') } }),
    ],
    [
      'with a shorter path',
      'log_refused',
      states,
      (start) => ({ ...start, table: { ...start.table, path: start.table?.path.slice(1) } }),
    ],
    [
      'with a longer path',
      'log_refused',
      states,
      (start) => ({ ...start, table: { ...start.table, path: [...(start.table?.path ?? []), '00'.repeat(32)] } }),
    ],
    [
      'of the empty tree, with states',
      'log_refused',
      states,
      ({ origin }) => ({ origin, checkpoint: null, hashes: [] }),
    ],
  ])('%s is refused with %s', async (_, code, rows, change) => {
    const { start } = await createChanged()
    const { statementLog } = createTestLog()
    if (rows.length > 0) await statementLog.call({ states: { from: 0, rows } })
    await expect(statementLog.call({ start: change(start) as never })).rejects.toEqual(withCode(code))
    expect((await statementLog.call({})).log).toBeNull()
    await statementLog.call({ states: { from: 0, rows: states } })
    expect((await statementLog.call({ start })).log?.origin).toBe(origin)
  })

  test('gives the key worker no states that arrive after the check', async () => {
    const { start } = await createChanged()
    let given: readonly string[] = []
    const startTable: typeof keyWorker.startTable = async (_, rows) => {
      await statementLog.call({ states: { from: states.length, rows: [toState('c3')] } })
      given = rows
      return true
    }
    const { statementLog } = createTestLog({ keyWorker: { ...keyWorker, startTable } })
    await statementLog.call({ states: { from: 0, rows: states } })
    await statementLog.call({ start })
    expect(given).toEqual(states)
  })

  test('takes states only in order', async () => {
    const { statementLog } = createTestLog()
    await expect(statementLog.call({ states: { from: 1, rows: states } })).rejects.toEqual(withCode('log_refused'))
  })
})

describe('a counted payment', () => {
  const needs = { witnesses: witnesses.slice(0, 1).map(({ key }) => toHex(key.publicKey)), quorum: 1 }
  const counted = () => ({ ...createSignedItem({ needs }), countedFor: [2] })

  test.each([
    [125, 1],
    [126, 0],
  ])('is released %i s after its date, by the clock of the policy’s own witness: %i', async (lateS, count) => {
    const log = await createOpenLog()
    const item = counted()
    const { checkpoint } = await sign(log, [item])
    const [own, ...others] = witnesses
    const dated = [cosign(checkpoint, [own] as never, NOW / 1000 + lateS), cosign(checkpoint, others, NOW / 1000)]
    const cosignatures = dated.flatMap(({ cosignatures }) => cosignatures)
    log.clock.nowMs += 1000 * lateS
    const released = await release(log.statementLog, { checkpoint, cosignatures, leaves: [toLeaf(item)] })
    expect(released.filter((one) => one !== null)).toHaveLength(count)
  })

  test('is erased if the key that approved it is revoked, before and after it was stored', async () => {
    const log = await createOpenLog()
    const { statementLog } = log
    const item = counted()
    const { checkpoint } = await sign(log, [item])
    await sign(log, [{ ...createSignedItem(), revokes: 2 }])
    expect(await kindsOf(log)).toEqual(['boot', 'signature', 'dropped', 'signature'])
    expect(await release(statementLog, { ...cosign(checkpoint, witnesses), leaves: [toLeaf(item)] })).toEqual([null])
    await expect(sign(log, [counted()])).rejects.toEqual(withCode('log_unavailable'))
    await sign(log, [{ ...createSignedItem({ needs }), countedFor: [1] }])
  })
})

test('a count whose quote failed is in all later roots, also after 1,000 payments of other vaults', async () => {
  const log = await createOpenLog()
  const { statementLog } = log
  const others = Array.from({ length: 1_000 }, (_, index) => toState(index.toString(16).padStart(2, '0').slice(-2)))
  statementLog.change([{ row: 0, state: toState('a1', '01') }])
  await sign(log, [createSignedItem()], { quoting: Promise.reject(new Error('no quote')) })
  for (const [index, state] of others.entries()) {
    statementLog.change([{ row: 1 + index, state }])
    if (index % 100 === 99) await sign(log, [createSignedItem()])
  }
  const { log: answer } = await statementLog.call({ from: 0 })
  const last = decodeLogEntry(fromHex(answer?.entries.at(-1) ?? ''))
  expect(last).toMatchObject({ kind: 'table', rows: 1_001, root: rootOf([toState('a1', '01'), ...others]) })
  expect(answer?.states[0]).toEqual({ row: 0, state: toState('a1', '01') })
})

test('tells the signing thread the newest time of each witness under a checkpoint of this boot', async () => {
  const log = await createOpenLog()
  const { statementLog } = log
  const [w1, w2, w3] = witnesses
  const { checkpoint } = await sign(log, [createSignedItem()])
  await release(statementLog, cosign(checkpoint, [w2, w3] as never, NOW / 1000 + 9))
  await release(statementLog, cosign(checkpoint, [w1, w2] as never, NOW / 1000 + 5))
  const times = statementLog.times()
  const expected = [w1, w2, w3].map((one, index) => [
    toHex(one?.key.publicKey as never),
    NOW / 1000 + (index === 0 ? 5 : 9),
  ])
  expect(times).toEqual({ origin, timesS: Object.fromEntries(expected) })
  expect(createTestLog().statementLog.times()).toBeUndefined()
})
