import { formatAddCheckpoint, hashOrigin } from '@countersign/log'
import { createConsistencyProof, createLeafReader } from '../../../packages/log/src/treeProofs.ts'
import { leaves, log, origin, toCosigned, toText } from '../../../packages/log/test/logs.ts'
import type { LogList } from '../src/logList.ts'
import { createKeyFile, readSigners } from '../src/signers.ts'
import type { Store, Stored } from '../src/store.ts'
import { createWitness, type WitnessDeps } from '../src/witness.ts'

const logs: LogList = new Map([[origin, [log.key]]])
export const keyFile = createKeyFile('witness.example/w1', (length) => new Uint8Array(length).fill(7))
export const signers = readSigners(keyFile)
export const NOW_S = 1_800_000_000

export type LoggedLine = Parameters<WitnessDeps['log']['warn']>[0]

/** A witness with its record in memory. `save` can be replaced. */
export function createTestWitness(deps: Partial<WitnessDeps> = {}) {
  const lines: LoggedLine[] = []
  const add = (line: LoggedLine) => void lines.push(line)
  const store = createMemoryStore()
  const witness = createWitness({
    logs,
    store,
    signers,
    clock: { now: () => NOW_S * 1_000 + 999 },
    log: { info: add, warn: add, error: add },
    ...deps,
  })
  return { witness, store, lines }
}

export function createMemoryStore(): Store & { saved: Map<string, Stored> } {
  const saved = new Map<string, Stored>()
  return {
    saved,
    latest: (name) => saved.get(name),
    save: (stored) => void saved.set(hashOrigin(stored.checkpoint.origin), stored),
  }
}

export type Step = { oldSize: number; size: number; history?: string }

/** A log's request to move from one size of a history to another. */
export function toRequest({ oldSize, size, history = '' }: Step): string {
  const proof =
    oldSize > size || oldSize === 0
      ? []
      : createConsistencyProof(createLeafReader(leaves(size, history)), { oldSize, size })
  return formatAddCheckpoint({ oldSize, proof, checkpoint: toCosigned(toText(size, history)) })
}

export const toBody = (step: Step) => new TextEncoder().encode(toRequest(step))
