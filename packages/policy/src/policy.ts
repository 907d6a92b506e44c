import type { EntropySetting, Hex, UnlimitedKind } from '@countersign/protocol/core'

/*
 * The rules of a vault, version 1: `spec/policy-v1.md` says what each member means. The hash of a policy is part of its vault's key, so
 * one policy has one spelling: canonical JSON, every list in ascending order of its items' canonical bytes and without repetition,
 * hex in lower case. Types only.
 */

/** A source whose signed samples tell the time to a schedule. */
export type TimeSource = Exclude<EntropySetting, { kind: 'unsigned' }>

/** A passkey: a discoverable WebAuthn credential of ES256. */
export type Approver = {
  /** 65 bytes: the uncompressed point of P-256. */
  publicKey: string
  /** The domain that the credential belongs to. */
  rpId: string
  /** Where the approving page may be: that domain, or below it. */
  origins: readonly string[]
}

/** Nonce `n` is signed from `startsAtMs + floor(n / count) · everyS · 1000` on. */
export type Schedule = { startsAtMs: number; everyS: number; count: number }

/** At least `quorum` of these witnesses (Ed25519 keys, 32 bytes of hex) must have cosigned the log. */
export type PolicyLog = { witnesses: readonly string[]; quorum: number }

export type ArgumentType = 'address' | 'bool' | 'bytes32' | `uint${number}`

/** What one word of the calldata must be. `max` is for `uintN`; with neither, the word must be of its type. */
export type ArgumentRule = {
  /** Which word after the selector, from 0. */
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
  /** In wei, for each transaction. */
  maxValueWei: string
  /** In wei, for each transaction: of gas · maxFeePerGas. */
  maxFeeWei: string
  /** Which functions may be called. Without it the transaction has no data. */
  selectors?: readonly Hex[] | undefined
  /** How many words of 32 bytes follow the selector, exactly. */
  words?: number | undefined
  arguments?: readonly ArgumentRule[] | undefined
  approvals: number
}

/** For any content of its kind. */
type UnlimitedRule = { [Kind in UnlimitedKind]: { kind: Kind; approvals: number } }[UnlimitedKind]

export type MessageRule = Extract<UnlimitedRule, { kind: 'message' }>

/** A domain of EIP-712 with exactly these members. */
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
}

export type Rule = TransactionRule | TypedDataRule | UnlimitedRule

export type Policy = {
  version: 1
  /** With a schedule, and only with one. */
  time?: readonly TimeSource[] | undefined
  log: PolicyLog | null
  approvers: readonly Approver[]
  schedule?: Schedule | undefined
  rules: readonly Rule[]
}
