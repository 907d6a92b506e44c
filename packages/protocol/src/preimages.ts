/*
 * Every domain-separation tag, with the fields that follow it. Everything that is signed, quoted or derived has a different tag, so that a
 * value for one purpose can't be passed off as another. `type` in a statement is `signing` or `signingV2`; all other tags are at the start of
 * their bytes, as `toTagBytes` writes them. Without `fields`, the caller appends the rest. One export each, so that an app loads only the
 * rows
 * it uses.
 */

/** The OpenID Connect nonce: a hash of the login secret. */
export const login = { tag: 'countersign/login/v1', fields: { loginSecret: 'rest' } } as const

/** The same if the browser has a key for this session. Its tag keeps it apart from a nonce without one. */
export const loginV2 = { tag: 'countersign/login/v2', fields: { loginSecretHash: 32, clientKey: 65 } } as const

/** A browser key's signature over one request of its session. Zeros stand for no policy, and for the digest of an address. */
export const stamp = {
  tag: 'countersign/stamp/v1',
  fields: { address: 20, policyHash: 32, rule: 'u8', kind: 'u8', digest: 32, issuedMs: 'u64' },
} as const

/** How a statement names a session with a browser key. With the address, so that the name doesn't link two addresses of a person. */
export const session = { tag: 'countersign/session/v1', fields: { clientKey: 65, address: 20 } } as const

/** The commitment to the owner of an address. */
export const owner = { tag: 'countersign/owner/v1', fields: { salt: 32, identity: 'rest' } } as const

/** HKDF info of the key that makes the salts of owner commitments. */
export const ownerSalt = { tag: 'countersign/owner-salt/v1', fields: {} } as const

/** Report data of a quote over a batch of statements. */
export const tdxReport = {
  tag: 'countersign/tdx-report/v1',
  fields: { treeSize: 'u32', root: 32, bootId: 16, batchSequence: 'u64', previousBatchHash: 32, configHash: 32 },
} as const

/** Report data of a quote over the enclave's TLS key. */
export const enclaveAttest = {
  tag: 'countersign/enclave-attest/v1',
  fields: { tlsKeyHash: 32, nonce: 32, configHash: 32 },
} as const

/** Report data of the coordinator's own report. */
export const snpReport = { tag: 'countersign/snp-report/v1', fields: { publicKey: 32, configHash: 32 } } as const

/** A coordinator's signature over a leaf and the collateral it was verified with. */
export const release = {
  tag: 'countersign/release/v1',
  fields: { leaf: 32, collateralHash: 32, selfAttestationHash: 32, witnessHash: 32 },
} as const

/** A coordinator's signature over the nonce given to `GET /health/attestation`. */
export const healthNonce = { tag: 'countersign/health-nonce/v1', fields: { nonce: 'rest' } } as const

/** A coordinator's signature over its calls to the enclave. */
export const caller = { tag: 'countersign/caller/v1', fields: { timeMs: 'u64', bodyHash: 32, path: 'rest' } } as const

/** Authenticates grants: the HKDF info of the key, with the configuration's hash, and the authenticated message, with the payload. */
export const grant = { tag: 'countersign/grant/v1', fields: { content: 'rest' } } as const

/** Report data of an enclave's request for a root secret. The secret is also sealed with it. */
export const keyTransfer = {
  tag: 'countersign/key-transfer/v1',
  fields: { side: [1], challenge: 32, nonce: 32, publicKey: 32, configHash: 32 },
} as const

/** Report data of an enclave that provides a root secret. */
export const keyTransferReply = {
  tag: 'countersign/key-transfer/v1',
  fields: { side: [2], challenge: 32, nonce: 32, publicKey: 32, enc: 32, ciphertextHash: 32, configHash: 32 },
} as const

/** Report data of a quote over a backup of a root secret. */
export const rootBackup = { tag: 'countersign/root-backup/v1', fields: { backupHash: 32, configHash: 32 } } as const

/** HPKE info that seals a share to its custodian. */
export const rootShare = {
  tag: 'countersign/root-share/v1',
  fields: { policyHash: 32, configHash: 32, commitment: 32, threshold: 'u32', index: 'u32' },
} as const

/** The hash that identifies a share. */
export const rootShareHash = { tag: 'countersign/root-share-hash/v1', fields: { index: 'u32', share: 33 } } as const

/** HKDF info of the value that identifies a root secret. */
export const rootCommitment = { tag: 'countersign/root-commitment/v1' } as const

/** Report data of a quote over the key of an enclave in recovery. */
export const rootRecovery = {
  tag: 'countersign/root-recovery/v1',
  fields: { nonce: 32, publicKey: 32, backupHash: 32, configHash: 32 },
} as const

/** HPKE info that seals a share to an enclave in recovery. */
export const rootSubmission = {
  tag: 'countersign/root-submission/v1',
  fields: { backupHash: 32, configHash: 32, index: 'u32' },
} as const

/** A satellite's signature over a sample. */
export const entropy = {
  tag: 'countersign/entropy/v1',
  fields: { value: 32, timestampMs: 'u64', sequence: 'u64' },
} as const

/** `type` of a signing statement. */
export const signing = { tag: 'countersign/signing/v1' } as const

/** `type` of a signing statement of version 2. */
export const signingV2 = { tag: 'countersign/signing/v2' } as const

/** The hash of what was signed, in a statement of version 2. */
export const subject = { tag: 'countersign/subject/v1', fields: { subject: 'rest' } } as const

/** Report data of the coordinator's own report over both of its keys. */
export const snpReportV2 = {
  tag: 'countersign/snp-report/v2',
  fields: { ed25519: 32, mlDsa65Hash: 32, configHash: 32 },
} as const

/** A coordinator's signatures over a batch, its collateral and the coordinator's own attestation. */
export const releaseV2 = {
  tag: 'countersign/release/v2',
  fields: { batchHash: 32, collateralHash: 32, coordinatorHash: 32 },
} as const

/** The commitment to the content of an off-chain signature. */
export const openingContent = { tag: 'countersign/opening-content/v1', fields: { salt: 32, content: 'rest' } } as const

/** The commitment to the bytes of an off-chain signature. */
export const openingSignature = {
  tag: 'countersign/opening-signature/v1',
  fields: { salt: 32, signature: 65 },
} as const

/** The commitment to both: the public part of an off-chain signature. */
export const opening = { tag: 'countersign/opening/v1', fields: { content: 32, signature: 32 } } as const

/** HKDF info of wallet keys. */
export const wallet = { tag: 'countersign/wallet/v1' } as const

/** HKDF info of the key that derives key IDs. */
export const keyId = { tag: 'countersign/key-id/v1' } as const

/** HKDF info of vault keys, followed by the owner and the policy's hash. */
export const vault = { tag: 'countersign/vault/v1', fields: { owner: 32, policyHash: 32 } } as const

/** HKDF info of the key IDs of vaults, followed by the same fields. */
export const vaultKeyId = { tag: 'countersign/vault-key-id/v1', fields: { owner: 32, policyHash: 32 } } as const

/** The challenge that a passkey signs to approve a vault's signature. */
export const approval = {
  tag: 'countersign/approval/v1',
  fields: { vaultAddress: 20, policyHash: 32, rule: 'u8', kind: 'u8', digest: 32, expiresMs: 'u64' },
} as const

/** What the key of a program signs to approve a vault's signature: the same fields. */
export const agentApproval = { ...approval, tag: 'countersign/agent-approval/v1' } as const

/** HKDF info of log keys. An incompatible change of the log's entries needs another tag, so that older code can't continue a log. */
export const log = { tag: 'countersign/log/v1b', fields: { origin: 'rest' } } as const

/** A witness's signature over a statement about a log. */
export const witnessStatement = { tag: 'countersign/witness-statement/v1', fields: { statement: 'rest' } } as const

/** A coordinator's signature over a key that signs webhooks. */
export const webhookKey = { tag: 'countersign/webhook-key/v1', fields: { key: 32 } } as const
