import { approvals } from './approval.ts'
import type { Authorization } from './authorization.ts'
import { type OffChainContent, offChainKinds, parseOffChainContent } from './contents.ts'
import { type DrandWitness, isDrandWitness } from './drand.ts'
import { type EntropyWitness, isEntropyWitness } from './entropy.ts'
import { isHex } from './hex.ts'
import type { OffChainKind } from './kinds.ts'
import { CLIENT_KEY_BYTES } from './login.ts'
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
import { ruleIndex, stamp } from './stamp.ts'
import { toPreimage } from './tags.ts'
import type { TxMetadata } from './txMetadata.ts'

/*
 * Coordinator ↔ enclave. Each call is a POST with a JSON body, signed by the coordinator's key. There is no other interface. Byte strings
 * are lower-case hex without a prefix, except Ethereum's.
 */

export const enclavePaths = {
  attest: '/attest',
  openSession: '/open-session',
  sign: '/sign',
  vault: '/vault',
  log: '/log',
  release: '/release',
} as const

/**
 * Headers with the caller's key (32 bytes), time (milliseconds), signature (64 bytes) and the SHA-256 of the body. With the last one, the
 * enclave checks the signature before it reads the body. Calls without it are valid too, but share a smaller memory limit.
 */
export const callerHeaders = {
  key: 'countersign-caller',
  time: 'countersign-time',
  signature: 'countersign-signature',
  bodyHash: 'countersign-body',
} as const

/** The largest accepted clock difference. */
export const CALLER_TOLERANCE_MS = 30_000

/** The message that a coordinator signs (Ed25519) for each call: its time, path and the SHA-256 of its body. */
export function toCallerMessage(call: { path: string; timeMs: number; bodyHash: Uint8Array }): Uint8Array<ArrayBuffer> {
  const { path, timeMs, bodyHash } = call
  return toPreimage(preimages.caller, { timeMs, bodyHash, path: new TextEncoder().encode(path) })
}

const anyHex = leaf<string>((value) => isHex(value))

/** A value that its user checks, with a more specific error. */
// @__NO_SIDE_EFFECTS__
function unread<Value>() {
  return leaf<Value>((value) => value !== undefined)
}

/** A list of at most `most` items. The length is checked first, because callers choose it. */
// @__NO_SIDE_EFFECTS__
function shortList<Item>(most: number, isItem: (item: unknown) => unknown) {
  return leaf<readonly Item[]>((value) => Array.isArray(value) && value.length <= most && value.every(isItem))
}

// @__NO_SIDE_EFFECTS__
const hashes = (most: number) => shortList<string>(most, (item) => isHex(item, 32))

// @__NO_SIDE_EFFECTS__
const texts = (most: number) => shortList<string>(most, (item) => typeof item === 'string')

/** The coordinator's SEV-SNP report over its key and configuration, for enclaves with a caller policy. */
const callerAttestation = object({
  report: anyHex,
  certificates: object({ ek: anyHex, ask: anyHex, ark: anyHex }),
  /** AMD's revocation list, DER, if the coordinator could fetch it. */
  revocations: optional(anyHex),
  configHash: hex(32),
})
export type CallerAttestation = Infer<typeof callerAttestation>

/** The response is `AttestResponse`. */
export const attestRequest = object({
  /** 32 bytes, fresh. */
  nonce: hex(32),
  /** Present if the enclave has a caller policy. */
  caller: optional(callerAttestation),
})
export type AttestRequest = Infer<typeof attestRequest>

export const openSessionRequest = object({
  idToken: string(),
  /** 32 bytes. The token's nonce is its hash, with the client key if there is one. */
  loginSecret: hex(32),
  /** The browser's key. The session then signs only requests that this key has stamped. */
  clientKey: optional(hex(CLIENT_KEY_BYTES)),
})
export type OpenSessionRequest = Infer<typeof openSessionRequest>

/** Derives a vault of the session's user, without signing. */
export const vaultRequest = object({
  sid: hex(32),
  grant: string(),
  /** Canonical JSON. An invalid policy has a separate error code. */
  policy: string(),
  /** The vault exists: the enclave only derives its key and does not check its rules. */
  isKnown: optional(literal(true)),
})
export type VaultRequest = Infer<typeof vaultRequest>

/** The vault that signs, by which rule, and its approvals. */
const vaultUse = object({
  /** 32 bytes: the hash of the policy. */
  policy: hex(32),
  /** The index of the rule that allows this. No other rule is checked. Omitted for an address. */
  rule: optional(ruleIndex),
  /** An empty list means no approvals. */
  approvals: optional(approvals),
})
export type VaultUse = Infer<typeof vaultUse>

/** Members of every item: the key, the grant to use it, and the sample. */
const granted = object({
  sid: optional(hex(32)),
  grant: optional(string()),
  /** In place of a session: SHA-256(iss ‖ 0x00 ‖ sub) of the vault's owner. The approvals must suffice. */
  owner: optional(hex(32)),
  /** Present if a vault signs. */
  keyId: hex(16),
  /** The whole sample. The enclave verifies it and uses it for one signature. A beacon round may serve many. */
  witness: leaf<EntropyWitness | DrandWitness>((value) => isEntropyWitness(value) || isDrandWitness(value)),
  vault: optional(vaultUse),
  /** Required if the grant has a client key. */
  stamp: optional(stamp),
})

type Granted = Infer<typeof granted>
const hasSession = ({ sid, grant, owner }: Granted) => sid !== undefined && grant !== undefined && owner === undefined
/** The session of an owner, or for a vault only its owner. */
const hasAccess = (item: Granted) =>
  hasSession(item) ||
  (item.owner !== undefined && item.vault !== undefined && item.sid === undefined && item.grant === undefined)

const hasRule = (vault: VaultUse | undefined) => vault === undefined || vault.rule !== undefined

/** The sample is only for this call: signing the same again needs another. Members that are not hashed are rejected. */
const offChain = checked(
  object({ ...granted.members, kind: literal(...offChainKinds), content: unread() }),
  ({ kind, content, ...item }) =>
    hasAccess(item) && hasRule(item.vault) && parseOffChainContent(kind, content, TypeError),
) as Schema as Schema<OffChainItem>

/** The content to sign, by kind. Never a bare hash: the enclave rebuilds the content and hashes it itself. */
export const signItems = {
  transaction: checked(
    object({
      ...granted.members,
      kind: literal('transaction'),
      digest: ethereum(32),
      txMetadata: unread<TxMetadata>(),
      /** The statement's receipt version. Version 1 has no beacons and no vaults. */
      statementVersion: literal(1, 2),
    }),
    ({ statementVersion, ...item }) =>
      hasAccess(item) && (item.vault === undefined || (statementVersion === 2 && hasRule(item.vault))),
  ),
  authorization: checked(
    object({ ...granted.members, kind: literal('authorization'), authorization: unread<Authorization>() }),
    hasSession,
  ),
  ...(Object.fromEntries(offChainKinds.map((kind) => [kind, offChain])) as Record<OffChainKind, typeof offChain>),
  /**
   * Requests a statement that the address belongs to this enclave and these rules. It needs no approvals, because the wallet key signs
   * nothing. The sample is only for this call.
   */
  address: checked(
    object({ ...granted.members, kind: literal('address') }),
    (item) => hasSession(item) && item.vault?.approvals === undefined && item.vault?.rule === undefined,
  ),
  /** Revokes an approver's key. Needs a session of the owner, or the approval of one passkey of the vault. */
  revocation: checked(
    object({ ...granted.members, kind: literal('revocation'), key: hex(32) }),
    (item) => hasAccess(item) && item.vault !== undefined && item.vault.rule === undefined,
  ),
}

type Items = { [Kind in keyof typeof signItems]: Infer<(typeof signItems)[Kind]> }
export type TransactionItem = Items['transaction']
export type AuthorizationItem = Items['authorization']
export type OffChainItem = Infer<typeof granted> & OffChainContent
export type AddressItem = Items['address']
export type RevocationItem = Items['revocation']
export type SignItem = Items[keyof Items]

export const MAX_SIGN_ITEMS = 256

export const signItemsRequest = checked(
  object({
    /** 1 to 256 items of any kinds. A malformed item doesn't fail the others. */
    items: checked(
      shortList<SignItem>(MAX_SIGN_ITEMS, () => true),
      ({ length }) => length > 0,
    ),
    /** Canonical JSON of the policies that items name. If the enclave doesn't know a policy, it returns `policy_unknown`. */
    policies: optional(texts(MAX_SIGN_ITEMS)),
  }),
  ({ items, policies = [] }) => policies.length <= items.length,
)
export type SignItemsRequest = Infer<typeof signItemsRequest>

/** States of a table in one call to an enclave. */
export const MAX_STATES_PER_CALL = 4_096

/** Starts the log of a boot, or returns appended entries again. */
export const logRequest = object({
  /**
   * Continues from a checkpoint that the key of this origin signed, or from the empty tree (null), with the boot's entry first. If this boot
   * has already started the log, the enclave returns the same response again.
   */
  start: optional(
    object({
      origin: string(),
      checkpoint: nullable(string()),
      /** The frontier of the checkpoint's tree: one hash of 32 bytes for each bit set in its size. */
      hashes: hashes(53),
      /** The last entry of the checkpoint's tree, which is the root of the table, and its siblings in the smallest complete subtree. */
      table: optional(object({ entry: hex(57), path: hashes(53) })),
    }),
  ),
  /** States of the table that the start needs, by row. A call has some; the first has `from` 0. */
  states: optional(object({ from: natural, rows: shortList<string>(MAX_STATES_PER_CALL, (state) => isHex(state)) })),
  /** The first entry to return again. The enclave may forget entries that a quorum has cosigned. Its response says where it begins. */
  from: optional(natural),
})
export type LogRequest = Infer<typeof logRequest>

/** Enough to release some thousands of signatures in one call. */
const leaves = hashes(4_096)

/** The second step of signing with a log: requests the statements of a checkpoint that a quorum has cosigned. */
export const releaseRequest = checked(
  object({
    /** The boot that signed. */
    bootId: hex(16),
    /**
     * The checkpoint as this boot returned it, and the witnesses' lines (`— name base64`), at most two per witness. Both or neither: without
     * them, the enclave releases nothing.
     */
    checkpoint: optional(string()),
    cosignatures: optional(texts(2 * MAX_WITNESSES)),
    /** Leaves to release, without duplicates. Can be repeated until they are acknowledged. */
    leaves: optional(checked(leaves, (all) => new Set(all).size === all.length)),
    /** Leaves that no caller waits for. The enclave erases them unless they are already released. */
    drop: optional(leaves),
    /** Leaves whose statements are stored. */
    acknowledge: optional(leaves),
  }),
  ({ checkpoint, cosignatures }) => (checkpoint === undefined) === (cosignatures === undefined),
)
export type ReleaseRequest = Infer<typeof releaseRequest>
