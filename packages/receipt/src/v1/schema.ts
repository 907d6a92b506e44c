import { type AttestationReceiptV1, MAX_BLOCK_BYTES, tags } from '@countersign/protocol'
import { z } from 'zod'
import {
  certificates,
  cid,
  config,
  ethereum,
  eventLog,
  hex,
  natural,
  quoteHex,
  reportHex,
  tcbStatus,
  time,
  toReadonly,
  transaction,
  witness,
} from '../schemaFields.ts'

/** The largest receipt: an IPFS block that every node accepts. */
export const MAX_RECEIPT_BYTES = MAX_BLOCK_BYTES

const mode = z.enum(['hardware', 'mock'])

const statement = z.strictObject({
  type: z.literal(tags.signing),
  keyId: hex(16),
  address: ethereum(20),
  publicKey: hex(65),
  digest: ethereum(32),
  signature: ethereum(65),
  txHash: ethereum(32),
  chainId: z.int().min(1),
  entropyHash: hex(32),
  coordinatorKey: hex(32),
  signedAt: time,
})

const tdMeasurement = z.strictObject({
  mrTd: hex(48),
  rtmr0: hex(48),
  rtmr1: hex(48),
  rtmr2: hex(48),
  rtmr3: hex(48),
})

const signer = z.strictObject({
  kind: z.literal('tdx'),
  mode,
  keyId: hex(16),
  publicKey: hex(65),
  quoteHex,
  quoteVerified: z.boolean(),
  measurement: tdMeasurement,
  tcbStatus,
  statement,
  inclusion: z.strictObject({
    leafIndex: natural,
    treeSize: z.int().min(1).max(0xffff_ffff),
    path: toReadonly(z.array(hex(32)).max(32)),
  }),
  batch: z.strictObject({ bootId: hex(16), sequence: natural, previous: hex(32) }),
  config,
  eventLog: eventLog.optional(),
  collateral: cid,
})

/** The coordinator's attestation of its key at the time of the release. */
const selfAttestation = z.strictObject({
  reportHex,
  certificates,
  measurement: hex(48),
  configHash: hex(32),
  fetchedAt: time,
})

const coordinator = z.strictObject({
  kind: z.literal('sev-snp'),
  mode,
  selfAttestation,
  publicKey: hex(32),
  release: hex(64),
})

type Verification = AttestationReceiptV1['verification']

/** Constants: instructions for a reader, and the roots. A verifier compares them with its own. */
export const verificationConstants = {
  instructions: 'Verify with `npx @countersign/verifier verify FILE`. Anchors come from you, never from this receipt.',
  trustAnchors: {
    intelRootSha256: '44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3',
    amdRootSha256: [
      '69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd',
      '4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1',
      '1f084161a44bb6d93778a904877d4819cafa5d05ef4193b2ded9dd9c73dd3f6a',
    ],
  },
} as const

/** The type is wider than the constants, because a reader must compare them. */
const verification: z.ZodType<Verification, Verification> = z.strictObject({
  instructions: z.literal(verificationConstants.instructions),
  trustAnchors: z.strictObject({
    intelRootSha256: z.literal(verificationConstants.trustAnchors.intelRootSha256),
    amdRootSha256: z.tuple([
      z.literal(verificationConstants.trustAnchors.amdRootSha256[0]),
      z.literal(verificationConstants.trustAnchors.amdRootSha256[1]),
      z.literal(verificationConstants.trustAnchors.amdRootSha256[2]),
    ]),
  }),
})

export const RECEIPT_VERSION = 'countersign-attestation/1'
export const RECEIPT_SPEC = 'urn:countersign:spec:receipt:1'

export const receiptSchema = z.strictObject({
  version: z.literal(RECEIPT_VERSION),
  spec: z.literal(RECEIPT_SPEC),
  transaction,
  signer,
  coordinator,
  entropy: witness,
  verification,
  issuedAt: time,
})

export type { AttestationReceiptV1 }
export type SelfAttestation = AttestationReceiptV1['coordinator']['selfAttestation']
export type Witness = AttestationReceiptV1['entropy']
