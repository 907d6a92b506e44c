/**
 * Every domain-separation tag, in one list: no two things that are signed, quoted or derived may share one, or a value made
 * for one purpose could be passed off as another. All but `signing` and `signingV2` stand at the head of their bytes as `toTagBytes` has
 * them; those two are the `type` member of a statement.
 */
export const tags = {
  /** The OpenID Connect nonce: a hash of the login secret. */
  login: 'countersign/login/v1',
  /** Report data of a quote over a batch of statements. */
  tdxReport: 'countersign/tdx-report/v1',
  /** Report data of a quote over the enclave's TLS key. */
  enclaveAttest: 'countersign/enclave-attest/v1',
  /** Report data of the coordinator's own report. */
  snpReport: 'countersign/snp-report/v1',
  /** A coordinator's signature over a leaf and the collateral it was verified with. */
  release: 'countersign/release/v1',
  /** A coordinator's signature over the nonce given to `GET /health/attestation`. */
  healthNonce: 'countersign/health-nonce/v1',
  /** A coordinator's signature over its calls to the enclave. */
  caller: 'countersign/caller/v1',
  /** The authentication of grants: the HKDF info of its key, and the head of what is authenticated. */
  grant: 'countersign/grant/v1',
  /** The transfer of a root secret between enclaves; a byte after it says whose quote. */
  keyTransfer: 'countersign/key-transfer/v1',
  /** Report data of a quote over a backup of a root secret. */
  rootBackup: 'countersign/root-backup/v1',
  /** What a custodian's share is sealed with. */
  rootShare: 'countersign/root-share/v1',
  /** The hash by which a share is recognised. */
  rootShareHash: 'countersign/root-share-hash/v1',
  /** HKDF info of the value by which a root secret is recognised. */
  rootCommitment: 'countersign/root-commitment/v1',
  /** Report data of a quote over the key of an enclave that waits for shares. */
  rootRecovery: 'countersign/root-recovery/v1',
  /** What a share is sealed with on its way to an enclave that waits for it. */
  rootSubmission: 'countersign/root-submission/v1',
  /** A satellite's signature over a sample. */
  entropy: 'countersign/entropy/v1',
  /** `type` of a signing statement. */
  signing: 'countersign/signing/v1',
  /** `type` of a signing statement of version 2. */
  signingV2: 'countersign/signing/v2',
  /** The hash of what was signed, in a statement of version 2. */
  subject: 'countersign/subject/v1',
  /** Report data of the coordinator's own report over both of its keys. */
  snpReportV2: 'countersign/snp-report/v2',
  /** A coordinator's signatures over a batch, its collateral and the coordinator's own attestation. */
  releaseV2: 'countersign/release/v2',
  /** The commitment to the content of an off-chain signature. */
  openingContent: 'countersign/opening-content/v1',
  /** The commitment to the bytes of an off-chain signature. */
  openingSignature: 'countersign/opening-signature/v1',
  /** Both of them: what is public of an off-chain signature. */
  opening: 'countersign/opening/v1',
  /** HKDF info of wallet keys. */
  wallet: 'countersign/wallet/v1',
  /** HKDF info of the key that makes key ids. */
  keyId: 'countersign/key-id/v1',
  /** HKDF info of vault keys: an owner and the hash of a policy follow. */
  vault: 'countersign/vault/v1',
  /** HKDF info of the key ids of vaults: the same follows. */
  vaultKeyId: 'countersign/vault-key-id/v1',
  /** The challenge that a passkey signs to approve a signature of a vault. */
  approval: 'countersign/approval/v1',
  /** HKDF info of the keys of logs: an origin follows. */
  log: 'countersign/log/v1',
  /** A witness's signature over a statement about a log. */
  witnessStatement: 'countersign/witness-statement/v1',
  /** A coordinator's signature over a key that signs webhooks. */
  webhookKey: 'countersign/webhook-key/v1',
} as const

export type Tag = (typeof tags)[keyof typeof tags]

/**
 * The tag in UTF-8, ended by a zero byte, so that no tag with what follows it can read as a longer tag.
 *
 * @example
 * sha512(concatBytes(toTagBytes(tags.snpReport), publicKey, configHash))
 */
export function toTagBytes(tag: Tag): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${tag}\0`)
}
