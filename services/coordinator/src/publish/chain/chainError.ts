import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/** Why a chain call failed, and what the caller should do. */
export type ChainErrorCode =
  /** Retry: no answer, a late one or an unreadable one. A sent transaction may have arrived. */
  | 'chain_unavailable'
  /** Fix the configuration: the RPC serves another chain. */
  | 'chain_mismatch'
  /** Fix the configuration: the expected contract isn't at that address. */
  | 'contract_missing'
  /** Register the log, or have its owner rotate the publisher: this account may not publish its checkpoints. */
  | 'log_not_registered'
  /** Distrust the chain or the database: the contract has a checkpoint of another history. Publishing of this log stops. */
  | 'anchor_conflict'
  /** Fix the configuration, or have the owner rotate the publisher. */
  | 'publisher_not_allowed'
  /** Split the batch or fail the proof: the contract rejects the call with the error in `details`. Without one, only the node says so: retry. */
  | 'call_reverted'
  /** Check what used the nonce: another transaction was mined with it. */
  | 'nonce_too_low'
  /** Send the earlier transactions first. Many nodes queue such a transaction instead of rejecting it. */
  | 'nonce_gap'
  /** Raise the fees: below the base fee, below the node's minimum, or too little above the transaction to be replaced. */
  | 'underpriced'
  /** Send funds to the publisher's account. */
  | 'insufficient_funds'
  /** Read the node's message in `details`. */
  | 'transaction_refused'
  /** Wait, or raise `PUBLISH_GAS_PER_DAY`: the publisher has used its gas for 24 hours. */
  | 'gas_budget_spent'

/** A failure of the chain or its RPC. Contains neither the RPC's URL, which may have a key, nor the cause, which may quote it. */
export class ChainError extends ServiceError<ChainErrorCode> {
  override name = 'ChainError'
  constructor(code: ChainErrorCode, options?: Pick<ServiceErrorOptions, 'details'>) {
    super(code, messages[code], options)
  }
}

const messages: Record<ChainErrorCode, string> = {
  chain_unavailable: 'the chain’s RPC gave no usable answer',
  chain_mismatch: 'the RPC serves another chain',
  contract_missing: 'no such contract at that address',
  log_not_registered: 'this account may not publish checkpoints of the log',
  anchor_conflict: 'the chain has another history of the log',
  publisher_not_allowed: 'this account is not the contract’s publisher',
  call_reverted: 'the contract rejects the call',
  nonce_too_low: 'the nonce has been used',
  nonce_gap: 'an earlier nonce has not been used',
  underpriced: 'the fees are too low',
  insufficient_funds: 'the publisher’s account cannot pay',
  transaction_refused: 'the node rejected the transaction',
  gas_budget_spent: 'the publisher’s gas for 24 hours is spent',
}
