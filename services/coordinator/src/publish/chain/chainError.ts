import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/** Why a call of the chain failed. Each code says what the caller should do. */
export type ChainErrorCode =
  /** Try again: no answer, a late one, or one that cannot be read. Whether a sent transaction arrived is not known. */
  | 'chain_unavailable'
  /** Fix the configuration: the RPC is of another chain. */
  | 'chain_mismatch'
  /** Fix the configuration: there is no ServiceAttestations at that address. */
  | 'contract_missing'
  /** Fix the configuration, or have the owner rotate the publisher. */
  | 'publisher_not_allowed'
  /**
   * Split the batch, or give the proof up: the contract refuses the call, and `details` names its error. Where `details` has none, it is
   * only the node that says so: try again.
   */
  | 'call_reverted'
  /** Look at what took the nonce: another transaction was mined with it. */
  | 'nonce_too_low'
  /** Send the transactions before this one first. Many nodes queue such a transaction instead of saying so. */
  | 'nonce_gap'
  /** Raise the fees: below the base fee, below the node's minimum, or too little above the transaction to be replaced. */
  | 'underpriced'
  /** Put funds on the publisher's account. */
  | 'insufficient_funds'
  /** Read `details`: what the node said about the transaction. */
  | 'transaction_refused'
  /** Wait, or raise `PUBLISH_GAS_PER_DAY`: new transactions have used up the publisher's gas of 24 hours. */
  | 'gas_budget_spent'

/** A failure of the chain or of its RPC. Carries neither the RPC's URL, which may hold a key, nor the cause that quotes it. */
export class ChainError extends ServiceError<ChainErrorCode> {
  override name = 'ChainError'
  constructor(code: ChainErrorCode, options?: Pick<ServiceErrorOptions, 'details'>) {
    super(code, messages[code], options)
  }
}

const messages: Record<ChainErrorCode, string> = {
  chain_unavailable: 'the chain’s RPC gave no usable answer',
  chain_mismatch: 'the RPC is of another chain',
  contract_missing: 'there is no ServiceAttestations at that address',
  publisher_not_allowed: 'this account is not the contract’s publisher',
  call_reverted: 'the contract refuses the call',
  nonce_too_low: 'the nonce has been used',
  nonce_gap: 'an earlier nonce has not been used',
  underpriced: 'the fees are too low',
  insufficient_funds: 'the publisher’s account cannot pay',
  transaction_refused: 'the node refused the transaction',
  gas_budget_spent: 'the publisher’s gas for 24 hours is spent',
}
