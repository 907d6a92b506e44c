import { createNoteKey, encodeLogEntry, formatCheckpoint, type LogEntry, signNote } from '@countersign/log'
import { type Policy, toStateHex, type VaultState } from '@countersign/policy'
import {
  createInclusionPath,
  fromHex,
  hashTree,
  hashTreeLeaf,
  toHex,
  type VaultBudgetInfo,
} from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'

export type BudgetProofOptions = {
  policy: Policy
  /** By budget. Default: nothing. */
  spent?: readonly bigint[]
  /** Default: the window of `timeS`. */
  window?: number
  revoked?: number
  keyId?: string
  /** When the witnesses cosigned, in seconds. */
  timeS: number
  /** The witnesses that cosign, by the byte that fills their secrets. Default: 1 and 2. */
  witnesses?: readonly number[]
  /** The rows before and after the vault's. */
  others?: number
  origin?: string
  /** Entries after it in the tree. */
  later?: number
  /** Replaces the entry in the log. */
  toEntry?: (root: string, rows: number) => LogEntry
}

/** The service's response about a vault's budgets, with a valid proof. The witnesses are those of `packages/policy/test/policies.ts`. */
export function createBudgetProof(options: BudgetProofOptions): VaultBudgetInfo {
  const { policy, spent = [], timeS, revoked = 0, keyId = 'a1'.repeat(16), others = 2, witnesses = [1, 2] } = options
  const { budgets = [], approvers, log } = policy
  const { origin = log?.origin ?? '' } = options
  const toWindow = (periodS: number) => (periodS === 0 ? 0 : (options.window ?? Math.floor(timeS / periodS)))
  const counters = budgets.map(({ periodS }, index) => ({ window: toWindow(periodS), spent: spent[index] ?? 0n }))
  const value: VaultState = { keyId, random: '5a'.repeat(16), sequence: 7, revoked, counters }
  const state = toStateHex(value)
  const fill = (index: number) => hashTreeLeaf(Uint8Array.of(index))
  const rows = [...Array.from({ length: others }, (_, index) => fill(index)), hashTreeLeaf(fromHex(state)), fill(99)]
  const { toEntry = (root, count) => ({ kind: 'table', rows: count, root, timeMs: timeS * 1000 }) } = options
  const entry = encodeLogEntry(toEntry(toHex(hashTree(rows)), rows.length))
  const index = 4
  const after = Array.from({ length: options.later ?? 0 }, (_, at) => fill(5 + at))
  const entries = [fill(1), fill(2), fill(3), fill(4), hashTreeLeaf(entry), ...after]
  const text = formatCheckpoint({ origin, size: entries.length, root: hashTree(entries), extensions: [] })
  const signers = witnesses.map((byte) => {
    const secret = new Uint8Array(32).fill(byte)
    const publicKey = ed25519.getPublicKey(secret)
    const key = createNoteKey({ name: `w${byte}.example`, type: 'cosignature-ed25519', publicKey })
    return { key, sign: (message: Uint8Array) => ed25519.sign(message, secret), timestampS: timeS }
  })
  return {
    time: timeS,
    sequence: value.sequence,
    budgets: counters.map((counter, index) => ({
      window: counter.window,
      spent: String(counter.spent),
      left: String(BigInt(budgets[index]?.limit ?? 0) - counter.spent),
    })),
    revoked: approvers.flatMap(({ publicKey }, index) => ((revoked >>> index) & 1 ? publicKey : [])),
    proof: {
      row: others,
      state,
      path: createInclusionPath(rows, others).map(toHex),
      entry: toHex(entry),
      index,
      entryPath: createInclusionPath(entries, index).map(toHex),
      checkpoint: signNote(text, signers),
    },
  }
}
