import { type AttestationReceiptV1, type Hex, tags, tcbStatuses } from '@countersign/protocol'
import { z } from 'zod'

/** The largest receipt: one IPFS block that every node takes. */
export const MAX_RECEIPT_BYTES = 262_144

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))
const hexUpTo = (bytes: number) =>
  z
    .string()
    .regex(/^(?:[0-9a-f]{2})+$/)
    .max(2 * bytes)
/** The type says what the pattern checks. */
const toHexType = (schema: z.ZodString) => schema as unknown as z.ZodType<Hex, Hex>
/** Arrays of a receipt are not changed. Not zod's `readonly`, which would freeze them and mark the JSON schema. */
const toReadonly = <Item>(schema: z.ZodArray<z.ZodType<Item>>) =>
  schema as unknown as z.ZodType<readonly Item[], readonly Item[]>
const ethereum = (bytes: number) => toHexType(z.string().regex(new RegExp(`^0x[0-9a-f]{${2 * bytes}}$`)))
const decimal = z.string().regex(/^(?:0|[1-9][0-9]{0,77})$/)
const natural = z.int().min(0)
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const text = (length: number) => z.string().min(1).max(length)
const mode = z.enum(['hardware', 'mock'])

const transaction = z.strictObject({
  chainId: z.int().min(1),
  txHash: ethereum(32),
  from: ethereum(20),
  to: ethereum(20),
  nonce: natural,
  value: decimal,
  data: toHexType(z.string().regex(/^0x(?:[0-9a-f]{2})*$/)),
  gas: decimal,
  maxFeePerGas: decimal,
  maxPriorityFeePerGas: decimal,
  digestSigned: ethereum(32),
  signature: ethereum(65),
  signedAt: time,
})

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

const config = z.strictObject({
  issuers: toReadonly(
    z.array(z.strictObject({ issuer: text(2048), audience: text(2048), jwksOrigin: text(2048) })).min(1),
  ),
  caSet: text(256),
  rootSecret: text(256),
  quoteSource: text(256),
  callerPolicy: text(256),
  version: text(256),
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
  quoteHex: hexUpTo(65_536),
  quoteVerified: z.boolean(),
  measurement: tdMeasurement,
  tcbStatus: z.enum(tcbStatuses),
  statement,
  inclusion: z.strictObject({
    leafIndex: natural,
    treeSize: z.int().min(1).max(0xffff_ffff),
    path: toReadonly(z.array(hex(32)).max(32)),
  }),
  batch: z.strictObject({ bootId: hex(16), sequence: natural, previous: hex(32) }),
  config,
  eventLog: text(131_072).optional(),
  collateral: z.string().regex(/^b[a-z2-7]{58}$/),
})

/** The coordinator's attestation of its own key, as it stood when it released the signature. */
const selfAttestation = z.strictObject({
  reportHex: hex(1184),
  certificates: z.strictObject({ ek: hexUpTo(16_384), ask: hexUpTo(16_384), ark: hexUpTo(16_384) }),
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

/** The entropy sample drawn for this signature, with its source's signature. */
const witness = z.strictObject({
  source: text(256),
  valueHex: hex(32),
  signatureHex: hex(64),
  publicKey: hex(32),
  timestamp: time,
  sequence: natural,
})

type Verification = AttestationReceiptV1['verification']

/** Constants: what a reader should do, and under which roots the evidence must stand. Compared, never trusted. */
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

/** The type says less than the constants: a reader of a receipt compares them with its own. */
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
