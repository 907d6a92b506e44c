import {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  type Hex,
  hashSubject,
  hashWitness,
  type Signed,
  type TxMetadata,
  tags,
  toHex,
} from '@countersign/protocol'
import { keccak256, sha256, stringToBytes, stringToHex } from 'viem'
import { toRawCid } from '../vaults/vault.ts'

export type TestReceiptParameters = {
  txMetadata: TxMetadata
  from: Hex
  publicKey: Hex
  digest: Hex
  signature: Hex
  txHash: Hex
  signedAt: string
  sequence: number
}

/** A receipt in the shape of v1, with filler as evidence. No verifier accepts it. */
export function createTestReceipt(parameters: TestReceiptParameters): AttestationReceiptV1 {
  const { txMetadata, from, publicKey, digest, signature, txHash, signedAt, sequence } = parameters
  const { chainId } = txMetadata
  const keyId = filler('key id', 16)
  const coordinatorKey = filler('coordinator key', 32)
  const valueHex = filler(`entropy ${digest}`, 32)
  return {
    version: 'countersign-attestation/1',
    spec: 'urn:countersign:spec:receipt:1',
    transaction: { ...txMetadata, txHash, from, digestSigned: digest, signature, signedAt },
    signer: {
      kind: 'tdx',
      mode: 'mock',
      keyId,
      publicKey: publicKey.slice(2),
      quoteHex: filler('quote', 128),
      quoteVerified: true,
      measurement: {
        mrTd: filler('mrTd', 48),
        rtmr0: filler('rtmr0', 48),
        rtmr1: filler('rtmr1', 48),
        rtmr2: filler('rtmr2', 48),
        rtmr3: filler('rtmr3', 48),
      },
      tcbStatus: 'UpToDate',
      statement: {
        type: 'countersign/signing/v1',
        keyId,
        address: from,
        publicKey: publicKey.slice(2),
        digest,
        signature,
        txHash,
        chainId,
        entropyHash: sha256(`0x${valueHex}`).slice(2),
        coordinatorKey,
        signedAt,
      },
      inclusion: { leafIndex: 0, treeSize: 1, path: [] },
      batch: { bootId: filler('boot', 16), sequence, previous: filler('previous', 32) },
      config: {
        issuers: [{ issuer: 'https://idp.test', audience: 'test', jwksOrigin: 'https://idp.test' }],
        caSet: 'test',
        rootSecret: 'test',
        quoteSource: 'mock',
        callerPolicy: 'test',
        version: 'test',
      },
      collateral: toRawCid(stringToBytes('collateral')),
    },
    coordinator: {
      kind: 'sev-snp',
      mode: 'mock',
      selfAttestation: {
        reportHex: filler('report', 1184),
        certificates: { ek: filler('ek', 64), ask: filler('ask', 64), ark: filler('ark', 64) },
        measurement: filler('measurement', 48),
        configHash: filler('config', 32),
        fetchedAt: signedAt,
      },
      publicKey: coordinatorKey,
      release: filler(`release ${digest}`, 64),
    },
    entropy: {
      source: 'test-satellite',
      valueHex,
      signatureHex: filler(`entropy signature ${digest}`, 64),
      publicKey: filler('satellite', 32),
      timestamp: signedAt,
      sequence,
    },
    verification: {
      instructions: 'None: this receipt comes from a test service.',
      trustAnchors: { intelRootSha256: filler('root', 32), amdRootSha256: [] },
    },
    issuedAt: signedAt,
  }
}

export type TestReceiptV2Parameters = Pick<TestReceiptParameters, 'from' | 'publicKey' | 'signedAt' | 'sequence'> & {
  /** The hashes of a vault's policy and of the approvals, if any. */
  policy: string | null
  approvals: string | null
  /** The rule that allowed the signature, if a vault signed. */
  rule: number | null
  session: 'cookie' | 'none'
}

/** The same in the shape of version 2, for everything except transactions of the user's own wallet. */
export function createTestReceiptV2(
  signed: Signed,
  { from, publicKey, signedAt, sequence, policy, approvals, rule, session }: TestReceiptV2Parameters,
): AttestationReceiptV2 {
  const subject = toHex(hashSubject(signed.subject))
  const entropy = {
    source: 'test-satellite',
    valueHex: filler(`entropy ${subject}`, 32),
    signatureHex: filler(`entropy signature ${subject}`, 64),
    publicKey: filler('satellite', 32),
    timestamp: signedAt,
    sequence,
  }
  return {
    version: 'countersign-attestation/2',
    ...signed,
    signer: {
      statement: {
        type: tags.signingV2,
        kind: signed.kind,
        keyId: filler('key id', 16),
        address: from,
        publicKey: publicKey.slice(2),
        subject,
        witness: toHex(hashWitness(entropy)),
        policy,
        approvals,
        coordinatorKey: filler('coordinator key', 32),
        rule,
        session,
        signedAt,
      },
      inclusion: { leafIndex: 0, path: [] },
      batch: toRawCid(stringToBytes('batch')),
    },
    coordinator: { release: toRawCid(stringToBytes('release')) },
    entropy,
    issuedAt: signedAt,
  }
}

/** Deterministic bytes by name, as hex without a prefix. */
export function filler(name: string, length: number): string {
  let text = ''
  for (let part = 0; text.length < 2 * length; part++) text += keccak256(stringToHex(`${name} ${part}`)).slice(2)
  return text.slice(0, 2 * length)
}

/** Without padding, as slugs and cursors are written. */
export function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
