import { createInclusionProof, createLeafReader, decodeLogEntry } from '@countersign/log'
import { fromHex, hashTreeLeaf, hashTreeNode, toHex } from '@countersign/protocol'
import { createHexTable } from '@countersign/service/hexTable'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestLog, type TestLog } from '../../test/store/logs.ts'
import { randomHex, startTestStore, type TestStore } from '../../test/store/store.ts'
import { createLogTable, type LogTable } from './logTable.ts'

const need = { witnesses: ['01'.repeat(32)], quorum: 1 }
const MALFORMED = { code: 'log_malformed' }

let subject: TestStore
let log: TestLog
let table: LogTable
/** The table as the enclave has it. */
let states: string[]
beforeAll(async () => {
  subject = await startTestStore()
})
afterAll(() => subject.stop())
beforeEach(() => {
  log = createTestLog()
  states = []
  table = createTable()
})

const createTable = (store: Parameters<typeof createLogTable>[0]['store'] = subject.logStore) =>
  createLogTable({
    store,
    hash: log.hash,
    cosigner: {
      async cosign({ needs }) {
        expect(needs).toEqual([need])
        return { size: log.entries.length, note: log.toNote(log.entries.length, 2) }
      },
    },
  })
const toKeyId = (row: number) => row.toString(16).padStart(32, '0')
const toState = (row: number, sequence: number) =>
  `${toKeyId(row)}${randomHex(16)}${sequence.toString(16).padStart(16, '0')}00000000`
const toRoot = () => {
  const tree = createHexTable()
  for (const [row, state] of states.entries()) tree.set(row, state)
  return tree.computeRoot()
}

/** Changes rows like an enclave, and stores entries and states. */
async function change(rows: readonly number[], { isStored = true } = {}) {
  const from = log.entries.length
  const changed = rows.map((row) => ({ row, state: toState(row, log.entries.length) }))
  for (const { row, state } of changed) states[row] = state
  log.fill(rows.length)
  log.add({ kind: 'table', rows: states.length, root: toRoot() } as never)
  await subject.logStore.appendLog(log.toAppend({ from: from === 1 ? 0 : from, states: isStored ? changed : [] }))
}

test('a start has the newest states, the checkpoint, and a path that shows the last entry', async () => {
  expect(await table.readStart()).toBeUndefined()
  for (const rows of [[0, 1, 2], [1], [3, 0], [2], [2], [2], [2]]) {
    await change(rows)
    const found = await table.readStart()
    expect(found?.states).toEqual(states)
    expect(found?.size).toBe(log.entries.length)
    const { checkpoint, hashes, table: last } = found?.start ?? {}
    expect(checkpoint).toBe(log.toNote(log.entries.length))
    expect(last?.entry).toBe(toHex(log.entries.at(-1) as Uint8Array))
    const path = (last?.path ?? []).map(fromHex)
    const node = path.reduce((right, left) => hashTreeNode(left, right), hashTreeLeaf(fromHex(last?.entry ?? '')))
    expect(toHex(node)).toBe(hashes?.at(-1))
    expect(log.entries.length % 2 ** path.length).toBe(0)
  }
})

test('proves a state up to a cosigned checkpoint', async () => {
  await change([0, 1, 2])
  await change([1])
  const found = await table.findState({ keyId: toKeyId(1), need })
  expect(found).toMatchObject({ row: 1, state: states[1], index: log.entries.length - 1 })
  const { path = [], entry = '', index = 0, entryPath = [], checkpoint = '' } = found ?? {}
  const [right = '', left = ''] = [path[1], path[0]]
  const pair = hashTreeNode(fromHex(left), hashTreeLeaf(fromHex(states[1] ?? '')))
  expect(decodeLogEntry(fromHex(entry))).toMatchObject({
    kind: 'table',
    rows: 3,
    root: toHex(hashTreeNode(pair, fromHex(right))),
  })
  const size = log.entries.length
  const expected = createInclusionProof(createLeafReader(log.entries.map(hashTreeLeaf)), { index, size })
  expect(entryPath).toEqual(expected.map(toHex))
  expect(checkpoint).toBe(log.toNote(size, 2))
  expect(await table.findState({ keyId: toKeyId(7), need })).toBeUndefined()
})

test('reads what other coordinators have stored meanwhile', async () => {
  await change([0, 1])
  const other = createTable()
  await other.check()
  await change([1, 2])
  await change([0])
  await Promise.all([other.check(), other.check(), table.check()])
  expect((await other.readStart())?.states).toEqual(states)
})

test('notices states that are not those of the log', async () => {
  await change([0, 1])
  await table.check()
  await change([0], { isStored: false })
  await expect(table.check()).rejects.toMatchObject(MALFORMED)
  await expect(table.findState({ keyId: toKeyId(0), need })).rejects.toMatchObject(MALFORMED)
  await expect(createTable().check()).rejects.toMatchObject(MALFORMED)
  // A later change of the same row replaces the missing one.
  await change([0])
  await table.check()
})

test('reads all states again after the database was restored', async () => {
  await change([0, 1])
  const older = await subject.logStore.findTable(log.hash, -1)
  await change([1, 2])
  let isRestored = false
  const findTable = async (hash: string, since: number) =>
    isRestored ? older : subject.logStore.findTable(hash, since)
  const other = createTable({ ...subject.logStore, findTable })
  expect((await other.readStart())?.states).toEqual(states)
  isRestored = true
  expect((await other.readStart())?.states).toEqual(older?.states.map(({ state }) => state))
  await other.check()
})
