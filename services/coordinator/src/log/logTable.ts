import {
  createInclusionProof,
  decodeLogEntry,
  listInclusionNodes,
  listTreeNodes,
  type WitnessPolicy,
} from '@countersign/log'
import { fromHex, type LogRequest, toHex } from '@countersign/protocol'
import { createHexTable } from '@countersign/service/hexTable'
import type { LogStore, StoredTable } from '../store/logs.ts'
import { LogFault } from './appended.ts'
import type { Cosigner } from './cosigner.ts'

type LogTableDeps = {
  store: Pick<LogStore, 'findTable' | 'readNodes'>
  /** The log's id in the store. */
  hash: string
  cosigner: Pick<Cosigner, 'cosign'>
}

type Start = NonNullable<LogRequest['start']>

/** The state of one vault, with the proof that the table in a cosigned log has it. */
export type ProvenState = {
  row: number
  state: string
  /** The audit path of the row to the root in `entry`. */
  path: readonly string[]
  entry: string
  /** The place of `entry` in the log, and the audit path to the root in `checkpoint`. */
  index: number
  entryPath: readonly string[]
  checkpoint: string
}

/** The stored table of budgets. Other coordinators may write to it, so each use reads the changes first. */
export type LogTable = ReturnType<typeof createLogTable>

/** Bytes of hex. */
const KEY_ID_DIGITS = 32

export function createLogTable({ store, hash, cosigner }: LogTableDeps) {
  let table = createHexTable()
  let states: string[] = []
  let rows = new Map<string, number>()
  /** The size of the log that has this table. -1 before the first read. */
  let size = -1
  /** Reads run in sequence, because each starts where the previous one ended. */
  let reading: Promise<unknown> = Promise.resolve()

  function clear() {
    table = createHexTable()
    states = []
    rows = new Map()
    size = -1
  }

  async function readChanges(): Promise<StoredTable | undefined> {
    const stored = await store.findTable(hash, size)
    // Someone has restored the database.
    if ((stored?.size ?? -1) < size) {
      clear()
      return readChanges()
    }
    for (const { row, state } of stored?.states ?? []) {
      table.set(row, state)
      states[row] = state
      rows.set(state.slice(0, KEY_ID_DIGITS), row)
    }
    size = stored?.size ?? -1
    return stored
  }

  /** Runs `use` with the newest stored table, without reading another one meanwhile. */
  function withTable<Result>(use: (stored: StoredTable | undefined) => Promise<Result> | Result): Promise<Result> {
    const result = reading.catch(() => {}).then(async () => use(await readChanges()))
    reading = result
    return result
  }

  function assertSame({ entry }: StoredTable) {
    const last = decodeLogEntry(fromHex(entry))
    if (last.kind !== 'table' || (last.rows === table.size && last.root === table.computeRoot())) return
    clear()
    throw new LogFault('log_malformed', 'the stored states of budgets do not match the log')
  }

  return {
    /** What an enclave needs to continue the log, and all states. Undefined for an empty log. */
    readStart: () =>
      withTable(async (stored) => {
        if (stored === undefined) return undefined
        const nodes = listTreeNodes(stored.size)
        const path = listLastNodes(stored.size)
        const read = await store.readNodes(hash, [...nodes, ...path])
        const start: Omit<Start, 'origin'> = {
          checkpoint: stored.note,
          hashes: nodes.map((node) => toHex(read(node))),
          table: { entry: stored.entry, path: path.map((node) => toHex(read(node))) },
        }
        return { start, size: stored.size, states: [...states] }
      }),

    /** Throws `log_malformed` if the stored states don't match the log: an enclave could not start from them. */
    check: () => withTable((stored) => stored && assertSame(stored)),

    /** Returns undefined for a vault without a row. Waits for witnesses. */
    async findState({ keyId, need }: { keyId: string; need: WitnessPolicy }): Promise<ProvenState | undefined> {
      const found = await withTable((stored) => {
        const row = rows.get(keyId)
        if (stored === undefined || row === undefined) return undefined
        assertSame(stored)
        const { entry, size } = stored
        return { row, state: states[row] as string, path: table.listPath(row), entry, index: size - 1 }
      })
      if (found === undefined) return undefined
      const { index } = found
      const cosigned = await cosigner.cosign({ size: index + 1, needs: [need] })
      const place = { index, size: cosigned.size }
      const read = await store.readNodes(hash, listInclusionNodes(place))
      return { ...found, entryPath: createInclusionProof(read, place).map(toHex), checkpoint: cosigned.note }
    },
  }
}

/** The siblings of the last leaf in the smallest complete subtree that has it. All are to its left. */
function listLastNodes(size: number) {
  const nodes: { level: number; index: number }[] = []
  for (let [level, count] = [0, size]; count % 2 === 0; level += 1, count /= 2) nodes.push({ level, index: count - 2 })
  return nodes
}
