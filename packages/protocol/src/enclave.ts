import { approvals } from './approval.ts'
import type { Authorization } from './authorization.ts'
import { type OffChainContent, offChainKinds, parseOffChainContent } from './contents.ts'
import { type DrandWitness, isDrandWitness } from './drand.ts'
import { type EntropyWitness, isEntropyWitness } from './entropy.ts'
import { isHex } from './hex.ts'
import type { OffChainKind } from './kinds.ts'
import * as preimages from './preimages.ts'
import {
  checked,
  ethereum,
  hex,
  type Infer,
  leaf,
  literal,
  natural,
  nullable,
  object,
  optional,
  type Schema,
  string,
} from './schema.ts'
import { MAX_WITNESSES } from './settings.ts'
import { toPreimage } from './tags.ts'
import type { TxMetadata } from './txMetadata.ts'

/*
 * Coordinator ↔ enclave. Each call is a POST with a JSON body, signed by the coordinator's key; there is no other way in. Byte
 * strings are lower-case hex without a prefix, except those of Ethereum.
 */

/** The calls, and where each is. */
export const enclavePaths = {
  attest: '/attest',
  openSession: '/open-session',
  sign: '/sign',
  vault: '/vault',
  log: '/log',
  release: '/release',
} as const

/**
 * Headers that carry a caller's key (32 bytes), time of calling (milliseconds) and signature (64 bytes); and the SHA-256 of the body, by which
 * the enclave checks the signature before it reads the body. A call without that last one is signed alike, and shares less memory with others.
 */
export const callerHeaders = {
  key: 'countersign-caller',
  time: 'countersign-time',
  signature: 'countersign-signature',
  bodyHash: 'countersign-body',
} as const

/** How far a caller's clock may be off. */
export const CALLER_TOLERANCE_MS = 30_000

/** What a coordinator signs (Ed25519) for each call: when, with which body (its SHA-256), and which call. */
export function toCallerMessage(call: { path: string; timeMs: number; bodyHash: Uint8Array }): Uint8Array<ArrayBuffer> {
  const { path, timeMs, bodyHash } = call
  return toPreimage(preimages.caller, { timeMs, bodyHash, path: new TextEncoder().encode(path) })
}

const anyHex = leaf<string>((value) => isHex(value))

/** A value that is judged where it is used, with errors of its own. */
// @__NO_SIDE_EFFECTS__
function unread<Value>() {
  return leaf<Value>((value) => value !== undefined)
}

/** A list of no more than so many. Its length is judged first: callers choose it. */
// @__NO_SIDE_EFFECTS__
function shortList<Item>(most: number, isItem: (item: unknown) => unknown) {
  return leaf<readonly Item[]>((value) => Array.isArray(value) && value.length <= most && value.every(isItem))
}

// @__NO_SIDE_EFFECTS__
const hashes = (most: number) => shortList<string>(most, (item) => isHex(item, 32))

// @__NO_SIDE_EFFECTS__
const texts = (most: number) => shortList<string>(most, (item) => typeof item === 'string')

/** A coordinator's proof of what it is, for enclaves that ask: its SEV-SNP report over its key and configuration. */
const callerAttestation = object({
  report: anyHex,
  certificates: object({ ek: anyHex, ask: anyHex, ark: anyHex }),
  /** AMD's revocation list, DER, where the coordinator could get it. */
  revocations: optional(anyHex),
  configHash: hex(32),
})
export type CallerAttestation = Infer<typeof callerAttestation>

/** Answered by `AttestResponse`. */
export const attestRequest = object({
  /** 32 bytes, fresh. */
  nonce: hex(32),
  /** Introduces the caller where the enclave has a caller policy. */
  caller: optional(callerAttestation),
})
export type AttestRequest = Infer<typeof attestRequest>

export const openSessionRequest = object({
  idToken: string(),
  /** 32 bytes; the token's nonce is its hash. */
  loginSecret: hex(32),
})
export type OpenSessionRequest = Infer<typeof openSessionRequest>

/** Derives a vault of the session's user. Nothing is signed. */
export const vaultRequest = object({
  sid: hex(32),
  grant: string(),
  /** Canonical JSON. Whether it is a policy has an error of its own. */
  policy: string(),
  /** The vault exists: only its key is asked for, and its rules are not judged. */
  isKnown: optional(literal(true)),
})
export type VaultRequest = Infer<typeof vaultRequest>

/** Which vault of the session's user is to sign, and who approves. */
const vaultUse = object({
  /** 32 bytes: the hash of the policy. */
  policy: hex(32),
  /** An empty list is none. */
  approvals: optional(approvals),
})
export type VaultUse = Infer<typeof vaultUse>

/** What every item has: whose key, why it may be used, and with which sample. */
const granted = object({
  sid: hex(32),
  grant: string(),
  /** Of the vault, where there is one. */
  keyId: hex(16),
  /** The whole sample: the enclave verifies it, and signs once with it. A round of a beacon may serve many. */
  witness: leaf<EntropyWitness | DrandWitness>((value) => isEntropyWitness(value) || isDrandWitness(value)),
  vault: optional(vaultUse),
})

/** Its sample serves this one call: to sign the same again takes another. A member that would not be hashed is refused. */
const offChain = checked(
  object({ ...granted.members, kind: literal(...offChainKinds), content: unread() }),
  ({ kind, content }) => parseOffChainContent(kind, content, TypeError),
) as Schema as Schema<OffChainItem>

/** What is to be signed, by its kind. None is a bare hash: the enclave rebuilds what it signs, and hashes it itself. */
export const signItems = {
  transaction: checked(
    object({
      ...granted.members,
      kind: literal('transaction'),
      digest: ethereum(32),
      txMetadata: unread<TxMetadata>(),
      /** The version of the receipt that the statement is for. Version 1 knows no beacons and no vaults. */
      statementVersion: literal(1, 2),
    }),
    ({ vault, statementVersion }) => vault === undefined || statementVersion === 2,
  ),
  authorization: object({ ...granted.members, kind: literal('authorization'), authorization: unread<Authorization>() }),
  ...(Object.fromEntries(offChainKinds.map((kind) => [kind, offChain])) as Record<OffChainKind, typeof offChain>),
  /**
   * Asks for a statement that the address belongs to this enclave and these rules. The wallet key signs nothing, so there is nothing to
   * approve. Its sample serves this one call.
   */
  address: checked(
    object({ ...granted.members, kind: literal('address') }),
    ({ vault }) => vault?.approvals === undefined,
  ),
}

type Items = { [Kind in keyof typeof signItems]: Infer<(typeof signItems)[Kind]> }
export type TransactionItem = Items['transaction']
export type AuthorizationItem = Items['authorization']
export type OffChainItem = Infer<typeof granted> & OffChainContent
export type AddressItem = Items['address']
export type SignItem = Items[keyof Items]

export const MAX_SIGN_ITEMS = 256

export const signItemsRequest = checked(
  object({
    /** 1 to 256 of any kinds. Each is read by itself: one of the wrong shape does not fail the others. */
    items: checked(
      shortList<SignItem>(MAX_SIGN_ITEMS, () => true),
      ({ length }) => length > 0,
    ),
    /** Canonical JSON of policies that items name, at most as many as items. Without it, an enclave that does not know one answers `policy_unknown`. */
    policies: optional(texts(MAX_SIGN_ITEMS)),
  }),
  ({ items, policies = [] }) => policies.length <= items.length,
)
export type SignItemsRequest = Infer<typeof signItemsRequest>

/** Starts the log of a boot, or repeats what was appended. */
export const logRequest = object({
  /**
   * Goes on from a checkpoint that the key of this origin signed, or from the empty tree (null). The first entry is that of the boot. A
   * log that this boot has started before is not started again: the answer repeats it.
   */
  start: optional(
    object({
      origin: string(),
      checkpoint: nullable(string()),
      /** The frontier of the checkpoint's tree, 32 bytes each: one for each bit of its size. */
      hashes: hashes(53),
    }),
  ),
  /** The first entry to repeat. Those that a quorum is known to have cosigned may be forgotten: the answer says where it begins. */
  from: optional(natural),
})
export type LogRequest = Infer<typeof logRequest>

/** Room for the release of some thousands at once. */
const leaves = hashes(4_096)

/** The second step of signing with a log: statements for a checkpoint that a quorum cosigned. */
export const releaseRequest = checked(
  object({
    /** The boot that signed. */
    bootId: hex(16),
    /** As this boot gave it, and lines of witnesses below it (`— name base64`), of each at most two. Both or neither: without them nothing is released. */
    checkpoint: optional(string()),
    cosignatures: optional(texts(2 * MAX_WITNESSES)),
    /** Leaves whose statements are asked for, each once. Repeating it is harmless until they are acknowledged. */
    leaves: optional(checked(leaves, (all) => new Set(all).size === all.length)),
    /** Leaves that nobody waits for: erased for good, unless they were released. */
    drop: optional(leaves),
    /** Leaves whose statements are stored. */
    acknowledge: optional(leaves),
  }),
  ({ checkpoint, cosignatures }) => (checkpoint === undefined) === (cosignatures === undefined),
)
export type ReleaseRequest = Infer<typeof releaseRequest>
