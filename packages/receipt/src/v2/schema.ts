import {
  type AttestationReceiptV2,
  type BatchBlock,
  type CoordinatorBlock,
  fromHex,
  MAX_RULES,
  ML_DSA_65_KEY_BYTES,
  ML_DSA_65_SIGNATURE_BYTES,
  parseSignature,
  type ReleaseBlock,
  signatureKinds,
  tags,
} from '@countersign/protocol'
import { z } from 'zod'
import {
  certificates,
  cid,
  config,
  decimal,
  ethereum,
  eventLog,
  hex,
  hexUpTo,
  natural,
  quoteHex,
  reportHex,
  sourceName,
  text,
  time,
  toReadonly,
  transaction,
  witness,
} from '../schemaFields.ts'

const drandWitness = z.strictObject({
  kind: z.literal('drand'),
  source: sourceName,
  chainHash: hex(32),
  valueHex: hex(32),
  signatureHex: hex(48),
  publicKey: hex(96),
  timestamp: time,
  sequence: z.int().min(1),
})

const statement = z.strictObject({
  type: z.literal(tags.signingV2),
  kind: z.enum(signatureKinds),
  keyId: hex(16),
  address: ethereum(20),
  publicKey: hex(65),
  subject: hex(32),
  witness: hex(32),
  policy: hex(32).nullable(),
  approvals: hex(32).nullable(),
  coordinatorKey: hex(32),
  rule: z
    .int()
    .min(0)
    .max(MAX_RULES - 1)
    .nullable(),
  session: z.union([z.literal('cookie'), z.literal('none'), hex(16)]),
  signedAt: time,
})

function isSignature(text: string): boolean {
  try {
    parseSignature(fromHex(text.slice(2)))
    return true
  } catch {
    return false
  }
}

const authorization = z.strictObject({
  chainId: z.int().min(1),
  address: ethereum(20),
  nonce: natural,
  digest: ethereum(32),
  // The event's hash depends on the parts of the signature, so a malformed one could not be found on the chain.
  signature: ethereum(65).refine(isSignature, { error: 'not a signature' }),
})

const offChain = z.strictObject({ commitment: hex(32) })

const revocation = z.strictObject({ address: ethereum(20), policy: hex(32), key: hex(32) })

const budget = z.strictObject({
  time: natural.nullable(),
  sequence: z.int().min(1),
  isRepeated: z.boolean(),
  items: toReadonly(
    z.array(z.strictObject({ budget: natural, window: natural, before: decimal, after: decimal })).min(1),
  ),
})

const address = z.strictObject({ address: ethereum(20), policy: hex(32).nullable(), owner: hex(32) })

/** A step checks their order and validity. */
const approvals = toReadonly(
  z
    .array(
      z.union([
        z.strictObject({
          approver: natural,
          authenticatorData: hex(37),
          clientDataJSON: hexUpTo(2048),
          signature: hexUpTo(72),
          expiresMs: natural,
        }),
        z.strictObject({ approver: natural, signature: hex(64), expiresMs: natural }),
      ]),
    )
    .min(1),
)

const attestationMembers = {
  version: z.literal('countersign-attestation/2'),
  signer: z.strictObject({
    statement,
    inclusion: z.strictObject({ leafIndex: natural, path: toReadonly(z.array(hex(32)).max(32)) }),
    batch: cid,
  }),
  coordinator: z.strictObject({ release: cid }),
  entropy: z.union([witness, drandWitness]),
  // Lines with line feeds between them. A step checks the proof.
  log: text(131_072).optional(),
  issuedAt: time,
}

/** The order, and that the quorum is a majority, are checked with the hash of the settings. */
const logSetting = z.strictObject({
  origins: toReadonly(z.array(text(255)).min(1).max(16)),
  witnesses: toReadonly(z.array(hex(32)).min(1).max(32)),
  quorum: z.int().min(1),
})

const settings = z.strictObject({
  entropy: toReadonly(
    z
      .array(
        z.union([
          z.strictObject({ kind: z.literal('satellite'), key: hex(32) }),
          z.strictObject({
            kind: z.literal('drand'),
            key: hex(96),
            chainHash: hex(32),
            genesisS: natural,
            periodS: z.int().min(1),
          }),
          z.strictObject({ kind: z.literal('unsigned') }),
        ]),
      )
      .min(1),
  ),
  log: logSetting.nullable(),
  implementations: toReadonly(z.array(ethereum(20))),
  sessions: z.enum(['any', 'bound']),
})

/** The blocks of a receipt, each in its canonical form. */
export const blockSchemas: {
  batch: z.ZodType<BatchBlock, BatchBlock>
  coordinator: z.ZodType<CoordinatorBlock, CoordinatorBlock>
  release: z.ZodType<ReleaseBlock, ReleaseBlock>
  attestation: z.ZodType<AttestationReceiptV2, AttestationReceiptV2>
} = {
  batch: z.strictObject({
    version: z.literal('countersign-batch/2'),
    quoteHex,
    eventLog: eventLog.optional(),
    config,
    settings,
    bootId: hex(16),
    sequence: natural,
    previous: hex(32),
    treeSize: z.int().min(1).max(0xffff_ffff),
    // The key of a log: its origin, its ID, and a byte for the type before the 32 of the key.
    logKey: z
      .string()
      .regex(/^[^\s+]{1,255}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$/u)
      .optional(),
  }),
  coordinator: z.strictObject({
    version: z.literal('countersign-coordinator/2'),
    reportHex,
    certificates,
    revocations: hexUpTo(65_536).optional(),
    configHash: hex(32),
    keys: z.strictObject({ ed25519: hex(32), mlDsa65: hex(ML_DSA_65_KEY_BYTES) }),
    fetchedAt: time,
  }),
  // The version fixes the signatures and their order: none can be omitted, repeated or replaced by another kind.
  release: z.strictObject({
    version: z.literal('countersign-release/2'),
    batch: cid,
    collateral: cid,
    coordinator: cid,
    signatures: z.tuple([
      z.strictObject({ alg: z.literal('Ed25519'), value: hex(64) }),
      z.strictObject({ alg: z.literal('ML-DSA-65'), value: hex(ML_DSA_65_SIGNATURE_BYTES) }),
    ]),
  }),
  attestation: z.discriminatedUnion('kind', [
    z.strictObject({
      ...attestationMembers,
      kind: z.literal('transaction'),
      subject: transaction.extend({ budget: budget.optional() }),
      policy: cid.optional(),
      approvals: approvals.optional(),
    }),
    // Vaults don't sign authorizations: the authorized code would need no rule and no approval.
    z.strictObject({ ...attestationMembers, kind: z.literal('authorization'), subject: authorization }),
    z.strictObject({
      ...attestationMembers,
      kind: z.literal('off-chain'),
      subject: offChain,
      policy: cid.optional(),
    }),
    z.strictObject({ ...attestationMembers, kind: z.literal('address'), subject: address, policy: cid.optional() }),
    z.strictObject({
      ...attestationMembers,
      kind: z.literal('revocation'),
      subject: revocation,
      policy: cid,
      approvals: approvals.optional(),
    }),
  ]),
}
