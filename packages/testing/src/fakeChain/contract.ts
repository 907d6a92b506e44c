import type { AttestationPublished, CheckpointEvent, Hex } from '@countersign/protocol'
import { intrinsicGas } from './transaction.ts'

export type Call = { from: Hex; to: Hex | undefined; data: Hex; value: bigint }

export type Log = {
  address: Hex
  topics: Hex[]
  data: Hex
  /** The decoded event, under one of these names. */
  published?: AttestationPublished
  checkpoint?: CheckpointEvent
}

/** Returns the newest checkpoint of a log before the call. */
export type FindCheckpoint = (id: Hex) => CheckpointEvent | undefined

/** The effect of a call. `gas` comes on top of the intrinsic gas. `revert` is the error's data. */
type Effect = { gas: bigint; logs: Log[] } | { output: Hex } | { revert: Hex }

/** Undefined for calldata that doesn't match a function of the contract. */
export type FakeContract = (call: Call, findCheckpoint: FindCheckpoint) => Effect | undefined

export type Outcome = { gas: bigint; logs: Log[]; output: Hex; revert: Hex | undefined }

export type Execute = ReturnType<typeof createExecute>

/** Executes calls to these contracts, and transfers to other accounts. */
export function createExecute(contracts: ReadonlyMap<Hex, FakeContract>) {
  return (call: Call, findCheckpoint: FindCheckpoint): Outcome => {
    const intrinsic = intrinsicGas(call.data)
    const outcome: Outcome = { gas: intrinsic, logs: [], output: '0x', revert: undefined }
    const contract = call.to === undefined ? undefined : contracts.get(call.to)
    if (contract === undefined) return outcome
    const effect = (call.value === 0n ? contract(call, findCheckpoint) : undefined) ?? { revert: '0x' }
    if ('revert' in effect) return { ...outcome, ...effect, gas: intrinsic + 1_000n }
    return { ...outcome, ...effect, gas: intrinsic + ('gas' in effect ? effect.gas : 0n) }
  }
}
