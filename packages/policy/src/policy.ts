import type { EntropySetting, Hex, UnlimitedKind } from '@countersign/protocol/core'

/*
 * The rules of a vault, version 1. `spec/policy-v1.md` describes each member. A policy's hash is part of its vault's key, so a policy has one
 * canonical form: canonical JSON, every list in ascending order of its items' canonical bytes without duplicates, hex in lower case.
 */

/** A source whose signed samples prove the time for a schedule. */
export type TimeSource = Exclude<EntropySetting, { kind: 'unsigned' }>

/** A passkey: a discoverable WebAuthn credential of ES256. */
export type Passkey = {
  type: 'passkey'
  /** 65 bytes: the uncompressed point of P-256. */
  publicKey: string
  /** The credential's domain. */
  rpId: string
  /** The origins of the approving page: on that domain, or below it. */
  origins: readonly string[]
}

/** The Ed25519 key of a program: 32 bytes of hex. It approves only `spend` rules. */
export type AgentKey = { type: 'key'; publicKey: string }

export type Approver = Passkey | AgentKey

/** At most `limit` of an asset per window. `token` null is the chain's coin; `periodS` 0 is the vault's life. */
export type Budget = { chainId: number; token: Hex | null; limit: string; periodS: number }

/** Nonce `n` can be signed from `startsAtMs + floor(n / count) · everyS · 1000` on. */
export type Schedule = { startsAtMs: number; everyS: number; count: number }

/** At least `quorum` of these witnesses (Ed25519 keys, 32 bytes of hex) must have cosigned the log. Budgets live in the log `origin`. */
export type PolicyLog = { origin?: string | undefined; witnesses: readonly string[]; quorum: number }

/** The indexes of the approvers who count for a rule. `"any"` is every approver of a policy without budgets. */
export type RuleApprovers = 'any' | readonly number[]

export type ArgumentType = 'address' | 'bool' | 'bytes32' | `uint${number}`

/** A condition on one word of the calldata. `max` is for `uintN`. With neither, the word must only have its type. */
export type ArgumentRule = {
  /** The index of the word after the selector, from 0. */
  at: number
  type: ArgumentType
  /** Addresses and `bytes32` in hex with `0x`, booleans, or integers in decimal. */
  oneOf?: readonly (string | boolean)[] | undefined
  max?: string | undefined
}

export type TransactionRule = {
  kind: 'transaction'
  chainIds: 'any' | readonly number[]
  to: 'any' | readonly Hex[]
  /** In wei, per transaction. */
  maxValueWei: string
  /** In wei, per transaction: gas · maxFeePerGas. */
  maxFeeWei: string
  /** The allowed functions. Without it, the transaction must have no data. */
  selectors?: readonly Hex[] | undefined
  /** The exact number of words of 32 bytes after the selector. */
  words?: number | undefined
  arguments?: readonly ArgumentRule[] | undefined
  approvals: number
  approvers: RuleApprovers
}

/** For any content of its kind. */
type UnlimitedRule = {
  [Kind in UnlimitedKind]: { kind: Kind; approvals: number; approvers: RuleApprovers }
}[UnlimitedKind]

export type MessageRule = Extract<UnlimitedRule, { kind: 'message' }>

/** An EIP-712 domain with exactly these members. */
export type DomainRule = {
  name?: string | undefined
  version?: string | undefined
  chainId?: number | undefined
  verifyingContract?: Hex | undefined
}

export type TypedDataRule = {
  kind: 'typed-data'
  domains: 'any' | readonly DomainRule[]
  primaryTypes: 'any' | readonly string[]
  approvals: number
  approvers: RuleApprovers
}

/** The requests that pay exactly one amount that can be read from them. `spec/policy-v1.md` has the table. */
export type SpendForm = 'coin' | 'transfer' | 'eip3009' | 'x402-permit2'

/** Payments that are counted against budgets. */
export type SpendRule = {
  kind: 'spend'
  chainIds: readonly number[]
  payees: 'any' | readonly Hex[]
  forms: readonly SpendForm[]
  /** The contracts that may use a Permit2 permit, only with `x402-permit2`. */
  spenders?: readonly Hex[] | undefined
  approvals: number
  approvers: readonly number[]
  /** False if the approvals suffice, without a session of the owner. */
  session: boolean
}

export type Rule = TransactionRule | TypedDataRule | UnlimitedRule | SpendRule

export type Policy = {
  version: 1
  /** Required with a schedule, and not allowed without one. */
  time?: readonly TimeSource[] | undefined
  log: PolicyLog | null
  approvers: readonly Approver[]
  schedule?: Schedule | undefined
  /** Not with a schedule. Needs `log` with its origin. */
  budgets?: readonly Budget[] | undefined
  rules: readonly Rule[]
}
