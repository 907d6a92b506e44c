import { type AttestationPublished, type Hex, ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/** Why the chain did not do what it was asked. What each asks of the caller stands beside it. */
export type ChainErrorCode =
  /** Try again: no answer, a late one, or one that cannot be read. Whether a sent transaction arrived is not known. */
  | 'chain_unavailable'
  /** Fix the configuration: the RPC is of another chain. */
  | 'chain_mismatch'
  /** Fix the configuration: there is no ServiceAttestations at that address. */
  | 'contract_missing'
  /** Fix the configuration, or have the owner rotate the publisher. */
  | 'publisher_not_allowed'
  /** Split the batch, or give the proof up: the contract refuses the call. `details` has the contract's reason. */
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
}

/** EIP-1559, in wei. */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }

export type Call = { to: Hex; data: Hex }

export type UnsignedTransaction = Call & Fees & { nonce: number; gas: bigint; value?: bigint }

type SignedTransaction = { raw: Hex; hash: Hex }

export type ChainReceipt = {
  hash: Hex
  /** False where the transaction is in its block, but reverted. */
  isSuccess: boolean
  blockNumber: number
  blockHash: Hex
  gasUsed: bigint
  /** Of our contract only, in their order. */
  events: AttestationPublished[]
}

/** The chain that events go to, seen from the publisher's account. All but `sign` throw `ChainError`. */
export type Chain = {
  readonly chainId: number
  /** The publisher's address, lower case. */
  readonly account: Hex
  /** ServiceAttestations, lower case. */
  readonly contract: Hex
  /** Refuses to go on where the RPC is of another chain, the contract has no code, or this account is not its publisher. */
  assertReady(): Promise<void>
  /** The next nonce: after the newest block, or after what waits in the node's mempool too. */
  getNonce(block: 'latest' | 'pending'): Promise<number>
  /** Twice the base fee plus the tip: it still pays after five full blocks in a row. */
  getFees(): Promise<Fees>
  /** Gas that a call needs now; `call_reverted` where it would fail. */
  estimateGas(call: Call): Promise<bigint>
  /** Signs, without asking the chain anything: raw bytes and their hash. The same transaction gives the same bytes. */
  sign(transaction: UnsignedTransaction): Promise<SignedTransaction>
  /** Sends stored bytes. What the node knows already, or has mined, counts as sent. */
  send(raw: Hex): Promise<void>
  /** `undefined` where the transaction is in no canonical block, as far as the node knows; nodes may lag. */
  getReceipt(hash: Hex): Promise<ChainReceipt | undefined>
  /** `finalized` is `undefined` where the chain does not tell. */
  getHead(): Promise<{ number: number; finalized: number | undefined }>
  /** Of the canonical block; `undefined` where there is none yet. */
  getBlockHash(number: number): Promise<Hex | undefined>
}
