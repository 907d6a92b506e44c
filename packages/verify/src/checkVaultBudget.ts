import { assertInclusion, decodeLogEntry } from '@countersign/log'
import { type Policy, parseStateHex, type VaultState } from '@countersign/policy'
import { fromHex, hashTreeLeaf, ServiceError, type VaultBudgetInfo } from '@countersign/protocol'
import { VerifierError } from './errors.ts'
import { readCosigned } from './findNewestLog.ts'

/** How much older than its checkpoint a root may be. */
const MAX_AGE_S = 60

/** What a vault has spent, as its witnesses have cosigned it. */
export type CheckedBudget = {
  /** The witnesses' time under the checkpoint, in seconds since 1970. */
  timeS: number
  /** By their index in the policy, in the window of that time. `endsS` is null if the budget is for the vault's life. */
  budgets: readonly { spent: bigint; left: bigint; endsS: number | null }[]
  /** The public keys of revoked agents. */
  revoked: readonly string[]
}

/**
 * Checks the proof in the response of `GET /vaults/{address}/budget`: the state is in the table of a log entry, and the entry in a tree that
 * the policy's witnesses have cosigned. Uses no other amounts of the response. Null if nothing has been counted yet. Throws
 * `budget_not_proven`. The state names the vault by its key ID: compare `keyId` with one of the vault's receipts if you have one.
 */
export function checkVaultBudget(
  { approvers, budgets = [], log }: Policy,
  { proof, sequence }: Pick<VaultBudgetInfo, 'proof' | 'sequence'>,
  { keyId }: { keyId?: string | undefined } = {},
): CheckedBudget | null {
  if (proof === null) {
    if (sequence !== 0) throw notProven('there is no proof')
    return null
  }
  const state = parseStateHex(proof.state)
  if (state === undefined || state.counters.length !== budgets.length) throw notProven('the state is malformed')
  if (keyId !== undefined && state.keyId !== keyId) throw notProven('the state is of another vault')
  const cosigned = log === null ? undefined : readCosigned(proof.checkpoint, log)
  if (cosigned === undefined) throw notProven('the witnesses of the policy have not cosigned the checkpoint')
  const { checkpoint, passedS } = cosigned
  if (checkpoint.origin !== log?.origin) throw notProven('the checkpoint is of another log')
  assertProven(proof, { ...checkpoint, timeS: passedS })
  return {
    timeS: passedS,
    budgets: budgets.map(({ limit, periodS }, index) => {
      const counter = state.counters[index] as VaultState['counters'][number]
      const window = periodS === 0 ? 0 : Math.max(counter.window, Math.floor(passedS / periodS))
      const spent = window === counter.window ? counter.spent : 0n
      return { spent, left: BigInt(limit) - spent, endsS: periodS === 0 ? null : (window + 1) * periodS }
    }),
    revoked: approvers.flatMap(({ publicKey }, index) => ((state.revoked >>> index) & 1 ? publicKey : [])),
  }
}

function assertProven(
  { row, state, path, entry, index, entryPath }: NonNullable<VaultBudgetInfo['proof']>,
  { size, root, timeS }: { size: number; root: Uint8Array; timeS: number },
): void {
  try {
    const leaf = hashTreeLeaf(fromHex(entry))
    assertInclusion({ leaf, index, size, root, proof: entryPath.map(fromHex) })
    const table = decodeLogEntry(fromHex(entry))
    if (table.kind !== 'table') throw notProven('the entry has no table')
    // A busy log grows while its witnesses cosign. An older entry could hide payments.
    const isNew = index === size - 1 || table.timeMs >= 1000 * (timeS - MAX_AGE_S)
    if (!isNew) throw notProven('the entry is older than the checkpoint')
    const ofState = { leaf: hashTreeLeaf(fromHex(state)), index: row, size: table.rows }
    assertInclusion({ ...ofState, root: fromHex(table.root), proof: path.map(fromHex) })
  } catch (error) {
    if (error instanceof VerifierError || !(error instanceof ServiceError)) throw error
    throw notProven(error.details ?? error.message)
  }
}

function notProven(details: string) {
  return new VerifierError('budget_not_proven', 'the budget does not match its proof', { details })
}
