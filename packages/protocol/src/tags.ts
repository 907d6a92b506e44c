import { concatBytes } from './bytes.ts'
import { toField, toU32be, toU64be } from './fields.ts'

/**
 * A field of a preimage: its length in bytes, a big-endian integer, or bytes of any length, which can only be the last. A list is a constant
 * byte, which keeps two preimages of one tag apart.
 */
type Field = number | 'u8' | 'u32' | 'u64' | 'rest' | readonly [number]

/**
 * Every domain-separation tag, with the fields that follow it: no two things that are signed, quoted or derived may share a tag, or a value
 * made for one purpose could be passed off as another. `type` in a statement is `signing` or `signingV2`; all other tags are at the head of
 * their bytes, as `toTagBytes` has them. Without `fields`, the caller appends what follows.
 */
const preimages = {
  /** The OpenID Connect nonce: a hash of the login secret. */
  login: { tag: 'countersign/login/v1', fields: { loginSecret: 'rest' } },
  /** Report data of a quote over a batch of statements. */
  tdxReport: {
    tag: 'countersign/tdx-report/v1',
    fields: { treeSize: 'u32', root: 32, bootId: 16, batchSequence: 'u64', previousBatchHash: 32, configHash: 32 },
  },
  /** Report data of a quote over the enclave's TLS key. */
  enclaveAttest: { tag: 'countersign/enclave-attest/v1', fields: { tlsKeyHash: 32, nonce: 32, configHash: 32 } },
  /** Report data of the coordinator's own report. */
  snpReport: { tag: 'countersign/snp-report/v1', fields: { publicKey: 32, configHash: 32 } },
  /** A coordinator's signature over a leaf and the collateral it was verified with. */
  release: {
    tag: 'countersign/release/v1',
    fields: { leaf: 32, collateralHash: 32, selfAttestationHash: 32, witnessHash: 32 },
  },
  /** A coordinator's signature over the nonce given to `GET /health/attestation`. */
  healthNonce: { tag: 'countersign/health-nonce/v1', fields: { nonce: 'rest' } },
  /** A coordinator's signature over its calls to the enclave. */
  caller: { tag: 'countersign/caller/v1', fields: { timeMs: 'u64', bodyHash: 32, path: 'rest' } },
  /** The authentication of grants: the HKDF info of its key, and the head of what is authenticated. */
  grant: { tag: 'countersign/grant/v1' },
  /** Report data with which an enclave asks for a root secret. It is also what the secret is sealed with. */
  keyTransfer: {
    tag: 'countersign/key-transfer/v1',
    fields: { side: [1], challenge: 32, nonce: 32, publicKey: 32, configHash: 32 },
  },
  /** Report data with which an enclave gives a root secret. */
  keyTransferReply: {
    tag: 'countersign/key-transfer/v1',
    fields: { side: [2], challenge: 32, nonce: 32, publicKey: 32, enc: 32, ciphertextHash: 32, configHash: 32 },
  },
  /** Report data of a quote over a backup of a root secret. */
  rootBackup: { tag: 'countersign/root-backup/v1', fields: { backupHash: 32, configHash: 32 } },
  /** What a custodian's share is sealed with. */
  rootShare: {
    tag: 'countersign/root-share/v1',
    fields: { policyHash: 32, configHash: 32, commitment: 32, threshold: 'u32', index: 'u32' },
  },
  /** The hash by which a share is recognised. */
  rootShareHash: { tag: 'countersign/root-share-hash/v1', fields: { index: 'u32', share: 33 } },
  /** HKDF info of the value by which a root secret is recognised. */
  rootCommitment: { tag: 'countersign/root-commitment/v1' },
  /** Report data of a quote over the key of an enclave that waits for shares. */
  rootRecovery: {
    tag: 'countersign/root-recovery/v1',
    fields: { nonce: 32, publicKey: 32, backupHash: 32, configHash: 32 },
  },
  /** What a share is sealed with on its way to an enclave that waits for it. */
  rootSubmission: { tag: 'countersign/root-submission/v1', fields: { backupHash: 32, configHash: 32, index: 'u32' } },
  /** A satellite's signature over a sample. */
  entropy: { tag: 'countersign/entropy/v1', fields: { value: 32, timestampMs: 'u64', sequence: 'u64' } },
  /** `type` of a signing statement. */
  signing: { tag: 'countersign/signing/v1' },
  /** `type` of a signing statement of version 2. */
  signingV2: { tag: 'countersign/signing/v2' },
  /** The hash of what was signed, in a statement of version 2. */
  subject: { tag: 'countersign/subject/v1', fields: { subject: 'rest' } },
  /** Report data of the coordinator's own report over both of its keys. */
  snpReportV2: { tag: 'countersign/snp-report/v2', fields: { ed25519: 32, mlDsa65Hash: 32, configHash: 32 } },
  /** A coordinator's signatures over a batch, its collateral and the coordinator's own attestation. */
  releaseV2: { tag: 'countersign/release/v2', fields: { batchHash: 32, collateralHash: 32, coordinatorHash: 32 } },
  /** The commitment to the content of an off-chain signature. */
  openingContent: { tag: 'countersign/opening-content/v1', fields: { salt: 32, content: 'rest' } },
  /** The commitment to the bytes of an off-chain signature. */
  openingSignature: { tag: 'countersign/opening-signature/v1', fields: { salt: 32, signature: 65 } },
  /** Both of them: what is public of an off-chain signature. */
  opening: { tag: 'countersign/opening/v1', fields: { content: 32, signature: 32 } },
  /** HKDF info of wallet keys. */
  wallet: { tag: 'countersign/wallet/v1' },
  /** HKDF info of the key that makes key ids. */
  keyId: { tag: 'countersign/key-id/v1' },
  /** HKDF info of vault keys: an owner and the hash of a policy follow. */
  vault: { tag: 'countersign/vault/v1', fields: { owner: 32, policyHash: 32 } },
  /** HKDF info of the key ids of vaults: the same follows. */
  vaultKeyId: { tag: 'countersign/vault-key-id/v1', fields: { owner: 32, policyHash: 32 } },
  /** The challenge that a passkey signs to approve a signature of a vault. */
  approval: {
    tag: 'countersign/approval/v1',
    fields: { vaultAddress: 20, policyHash: 32, kind: 'u8', digest: 32, expiresMs: 'u64' },
  },
  /** HKDF info of the keys of logs: an origin follows. */
  log: { tag: 'countersign/log/v1' },
  /** A witness's signature over a statement about a log. */
  witnessStatement: { tag: 'countersign/witness-statement/v1', fields: { statement: 'rest' } },
  /** A coordinator's signature over a key that signs webhooks. */
  webhookKey: { tag: 'countersign/webhook-key/v1', fields: { key: 32 } },
} as const satisfies Record<string, { tag: string; fields?: Record<string, Field> }>

type Preimages = typeof preimages
type Filled = { [Name in keyof Preimages]: Preimages[Name] extends { fields: unknown } ? Name : never }[keyof Preimages]

/** What a preimage is made of. Constants are not given. */
export type Preimage<Name extends Filled> = {
  [Key in keyof Preimages[Name]['fields'] as Preimages[Name]['fields'][Key] extends readonly [number]
    ? never
    : Key]: Preimages[Name]['fields'][Key] extends 'u8' | 'u32' | 'u64' ? number : Uint8Array
}

export const tags = Object.fromEntries(Object.entries(preimages).map(([name, { tag }]) => [name, tag])) as {
  readonly [Name in keyof Preimages]: Preimages[Name]['tag']
}

export type Tag = (typeof tags)[keyof typeof tags]

/** The tag in UTF-8, ended by a zero byte, so that no tag with what follows it can read as a longer tag. */
export function toTagBytes(tag: Tag): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${tag}\0`)
}

/**
 * The bytes that are hashed or signed: the tag and its fields, in the order of the table. Throws for a field of another length.
 *
 * @example
 * sha512(toPreimage('snpReport', { publicKey, configHash }))
 */
export function toPreimage<Name extends Filled>(name: Name, values: Preimage<Name>): Uint8Array<ArrayBuffer> {
  const { tag, fields } = preimages[name]
  const parts = Object.entries<Field>(fields).map(([key, field]) => encode(key, field, values[key as never]))
  return concatBytes(toTagBytes(tag), ...parts)
}

function encode(name: string, field: Field, value: number | Uint8Array): Uint8Array {
  if (typeof field === 'object') return Uint8Array.from(field)
  if (field === 'u8') return Uint8Array.of(value as number)
  if (field === 'u32') return toU32be(value as number)
  if (field === 'u64') return toU64be(value as number)
  return field === 'rest' ? (value as Uint8Array) : toField(name, value as Uint8Array, field)
}
