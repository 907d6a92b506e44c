import { SNP_REPORT_BYTES } from '@countersign/attestation'
import {
  type Approval,
  type Hex,
  type Opening,
  type PolicyRefusal,
  proofStatuses,
  type TypedData,
  type WalletUse,
} from '@countersign/protocol'
import { type ErrorCode, errorCodes } from '@countersign/protocol/errorCodes'
import { blockSchemas, receiptSchema } from '@countersign/receipt'
import { z } from '@hono/zod-openapi'

const codes = Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]
const time = () => z.iso.datetime({ precision: 3 })
const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))
/** Text that the pattern makes `Hex`, which zod cannot know. */
const toHexSchema = (pattern: RegExp) => z.string().regex(pattern) as unknown as z.ZodType<Hex, Hex>
const ethereum = (bytes: number) => toHexSchema(new RegExp(`^0x[0-9a-f]{${2 * bytes}}$`))
const anyCase = (bytes: number) => toHexSchema(new RegExp(`^0x[0-9a-fA-F]{${2 * bytes}}$`))
const wei = () => z.string().regex(/^(?:0|[1-9][0-9]{0,77})$/)

/* The words of specification §2, as the HTTP interface speaks them. */

export const sessionUserSchema = z
  .strictObject({ id: z.uuid(), email: z.string(), name: z.string().nullable() })
  .openapi('SessionUser')

export const loginProvidersSchema = z
  .strictObject({
    providers: z.array(
      z
        .strictObject({
          id: z.string().openapi({ description: 'Sign in at `/auth/<id>`.', example: 'google' }),
          name: z.string().openapi({ example: 'Google' }),
          icon: z.string().regex(/^data:image\/svg\+xml;base64,/),
        })
        .openapi('LoginProvider'),
    ),
  })
  .openapi('LoginProviders')

export const walletInfoSchema = z
  .strictObject({
    address: ethereum(20),
    createdAt: time(),
    provenance: z
      .strictObject({
        entropyHash: hex(32).openapi({ description: 'SHA-256 of the sample drawn when the wallet was made.' }),
        entropySig: z
          .string()
          .regex(/^[0-9a-f]{96}(?:[0-9a-f]{32})?$/)
          .openapi({
            description: 'The source’s signature over that sample: Ed25519, or BLS of a beacon.',
          }),
        satelliteSource: z.string(),
      })
      .openapi({ description: 'The witness of provisioning; it never changes.' }),
  })
  .openapi('WalletInfo')

const approvalSchema = z
  .strictObject({
    approver: z
      .int()
      .min(0)
      .openapi({ description: 'Index among the policy’s approvers; the list is by ascending index.' }),
    authenticatorData: hex(37),
    clientDataJSON: z.string().regex(/^(?:[0-9a-f]{2})*$/),
    signature: z
      .string()
      .regex(/^(?:[0-9a-f]{2})*$/)
      .openapi({ description: 'ES256, in DER.' }),
    expiresMs: z.int().min(0),
  })
  .openapi('Approval', { description: 'A WebAuthn assertion over the challenge of one signature; bytes in hex.' })

const walletUse = {
  wallet: anyCase(20)
    .optional()
    .openapi({ description: 'Which of the user’s wallets signs: a vault or their own; without it their own.' }),
  approvals: (z.array(approvalSchema).readonly() as z.ZodType<readonly Approval[], readonly Approval[]>)
    .optional()
    .openapi({ description: 'For a vault whose rule asks for some.' }),
}

const policySchema = z.looseObject({ version: z.literal(1) }).openapi('Policy', {
  description: 'The rules of a vault, each list in its order: `packages/policy/spec/policy-v1.md`.',
})

export const createVaultRequestSchema = z
  .strictObject({
    policy: policySchema,
    address: anyCase(20)
      .optional()
      .openapi({ description: 'Of a vault that was made before, which the service may have lost since.' }),
  })
  .openapi('CreateVaultRequest')

export const vaultInfoSchema = z
  .strictObject({
    address: ethereum(20),
    policyHash: hex(32).openapi({ description: 'SHA-256 of the policy’s canonical JSON.' }),
    policyCid: z.string(),
    policy: policySchema,
    createdAt: time(),
  })
  .openapi('VaultInfo')

export const vaultListSchema = z.strictObject({ vaults: z.array(vaultInfoSchema) }).openapi('VaultList')

export const attestResponseSchema = z
  .strictObject({ slug: z.string().regex(/^[A-Za-z0-9_-]{22}$/) })
  .openapi('AttestResponse')

const txMetadataSchema = z
  .strictObject({
    chainId: z.int().min(1),
    nonce: z.int().min(0),
    to: anyCase(20),
    value: wei(),
    data: toHexSchema(/^0x(?:[0-9a-fA-F]{2})*$/),
    gas: wei(),
    maxFeePerGas: wei(),
    maxPriorityFeePerGas: wei(),
  })
  .openapi('TxMetadata', {
    description: 'An EIP-1559 transaction with an empty access list; amounts are decimal strings in wei.',
  })

export const signDigestRequestSchema = z
  .strictObject({
    digest: anyCase(32).openapi({ description: 'keccak256 of the unsigned transaction that txMetadata describes.' }),
    txMetadata: txMetadataSchema,
    ...walletUse,
  })
  .openapi('SignDigestRequest')

export const signDigestResponseSchema = z
  .strictObject({
    signature: ethereum(65).openapi({ description: 'r ‖ s ‖ v, with a low s and v = 27 or 28.' }),
    slug: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
  })
  .openapi('SignDigestResponse')

const message = () => toHexSchema(/^0x(?:[0-9a-fA-F]{2})*$/)

export const signMessageRequestSchema = z
  .strictObject({
    message: message().openapi({ description: 'The bytes of the message, signed as EIP-191 has it.' }),
    ...walletUse,
  })
  .openapi('SignMessageRequest')

const typedDataSchema = z
  .strictObject({
    domain: z.record(z.string(), z.unknown()),
    types: z.record(z.string(), z.array(z.strictObject({ name: z.string(), type: z.string() })).readonly()),
    primaryType: z.string(),
    message: z.record(z.string(), z.unknown()),
  })
  .openapi('TypedData', { description: 'EIP-712. Integers are decimal strings, hex, or numbers within 2^53.' })

export const signTypedDataRequestSchema: z.ZodType<TypedData & WalletUse, TypedData & WalletUse> = typedDataSchema
  .extend(walletUse)
  .openapi('SignTypedDataRequest')

export const signAuthorizationRequestSchema = z
  .strictObject({
    chainId: z.int().min(1),
    address: anyCase(20).openapi({
      description: 'The code that the wallet delegates to; the operator lists what is allowed.',
    }),
    nonce: z.int().min(0),
  })
  .openapi('SignAuthorizationRequest')

const contentHalf = { salt: hex(32), digest: ethereum(32), approvals: z.array(approvalSchema).optional() }

const openingSchema = z
  .strictObject({
    content: z.union([
      z.strictObject({ ...contentHalf, kind: z.literal('message'), content: z.strictObject({ message: message() }) }),
      z.strictObject({ ...contentHalf, kind: z.literal('typed-data'), content: typedDataSchema }),
    ]),
    signature: z.strictObject({ salt: hex(32), signature: ethereum(65) }),
  })
  .openapi('Opening', {
    description:
      'What opens the commitment of the proof. The service does not keep it: without it nothing can show what was signed.',
  }) as unknown as z.ZodType<Opening, Opening>

export const signOffChainResponseSchema = signDigestResponseSchema
  .extend({ opening: openingSchema })
  .openapi('SignOffChainResponse')

const attestationReceiptSchema = receiptSchema.clone().openapi('AttestationReceiptV1')
const attestationReceiptV2Schema = blockSchemas.attestation.clone().openapi('AttestationReceiptV2')
const kind = () =>
  z
    .enum(['authorization', 'off-chain', 'address'])
    .optional()
    .openapi({ description: 'Only where it is not a transaction.' })

export const proofPayloadSchema = z
  .strictObject({
    slug: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
    kind: kind(),
    txHash: ethereum(32).openapi({
      description:
        'What the event names: the transaction’s hash, that of the signed authorization, the commitment, or the hash of what is stated about an address.',
    }),
    chainId: z.int().min(0).openapi({ description: '0 for a signature that is off the chain, and for an address.' }),
    walletAddress: ethereum(20),
    status: z.enum(proofStatuses),
    ipfsCid: z.string().nullable(),
    ipfsUrl: z.string().nullable(),
    onchainTxHash: ethereum(32).nullable(),
    onchainBlockNumber: z.int().min(0).nullable(),
    kmsQuoteVerified: z
      .boolean()
      .openapi({ description: 'Whether this service verified the quote. Verify it yourself.' }),
    // A union rather than nullable(), which would make the component itself nullable.
    receipt: z.union([attestationReceiptSchema, attestationReceiptV2Schema, z.null()]),
    createdAt: time(),
  })
  .openapi('ProofPayload')

const summary = {
  txHash: ethereum(32),
  chainId: z.int().min(0),
  slug: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
  status: z.enum(proofStatuses).openapi({ description: 'Of its proof.' }),
  createdAt: time(),
  walletAddress: ethereum(20).optional().openapi({ description: 'Only where a vault signed.' }),
}

const transactionSummarySchema = z.union([
  z.strictObject({
    ...summary,
    to: ethereum(20),
    value: wei(),
    data: toHexSchema(/^0x(?:[0-9a-f]{2}){0,68}$/).openapi({ description: 'At most the first 68 bytes.' }),
    nonce: z.int().min(0),
  }),
  z.strictObject({ ...summary, kind: z.literal('authorization'), implementation: ethereum(20) }),
  z.strictObject({ ...summary, kind: z.literal('off-chain') }),
  z.strictObject({ ...summary, kind: z.literal('address') }),
])

export const transactionListSchema = z
  .strictObject({
    transactions: z.array(transactionSummarySchema),
    nextCursor: z.string().nullable().openapi({ description: 'For the next page; null on the last.' }),
  })
  .openapi('TransactionList')

export const attestationSchema = z
  .strictObject({
    vendor: z.literal('amd-sev-snp'),
    mode: z.enum(['hardware', 'mock']),
    report: hex(SNP_REPORT_BYTES),
    certificates: z.strictObject({ ek: z.string(), ask: z.string(), ark: z.string() }),
    measurement: hex(48),
    publicKey: hex(32),
    configHash: hex(32),
    fetchedAt: time(),
    expiresAt: time(),
    nonce: z.string().optional(),
    signature: hex(64)
      .optional()
      .openapi({ description: 'Ed25519 by publicKey over "countersign/health-nonce/v1", a zero byte, and the nonce.' }),
    webhookKeys: z
      .array(
        z.strictObject({
          key: z.string().openapi({ description: 'An Ed25519 key, `whpk_` and base64.' }),
          signature: hex(64).openapi({
            description:
              'Ed25519 by publicKey over "countersign/webhook-key/v1", a zero byte, and the 32 bytes of the key.',
          }),
        }),
      )
      .nullable()
      .optional()
      .openapi({
        description: 'Only where there are webhooks: the keys that sign them. Null while they are not known.',
      }),
  })
  .openapi('CoordinatorAttestation')

export const logListSchema = z
  .strictObject({
    logs: z.array(
      z
        .strictObject({
          hash: hex(32).openapi({ description: 'SHA-256 of the origin: its parts are at `/log/<hash>`.' }),
          origin: z.string(),
          key: z.string().openapi({ description: 'The verifier key, `name+id+key`.' }),
          size: z.int().min(0).openapi({ description: 'Of the newest cosigned checkpoint; 0 before the first.' }),
        })
        .openapi('LogInfo'),
    ),
  })
  .openapi('LogList')

export const okSchema = z.strictObject({ ok: z.literal(true) }).openapi('Ok')
const mockMode = z.literal('mock').optional().openapi({ description: 'Only where the silicon is simulated.' })

export const healthSchema = z.strictObject({ status: z.literal('ok'), mode: mockMode }).openapi('Health')
export const readinessSchema = z
  .strictObject({
    status: z.literal('ready'),
    mode: mockMode,
    missing: z
      .array(z.string())
      .optional()
      .openapi({ description: 'What does not answer, while the rest is enough: `witness NAME`, `log ORIGIN`.' }),
  })
  .openapi('Readiness')
export const emptySchema = z.strictObject({}).openapi('Empty')

const policyRefusalSchema = z
  .strictObject({
    reasons: z.array(z.string()).openapi({ description: 'Of the request as a whole.' }),
    rules: z.array(
      z.strictObject({
        rule: z.int(),
        reasons: z.array(z.strictObject({ code: z.string(), at: z.int().optional() })),
      }),
    ),
    nearest: z
      .int()
      .nullable()
      .openapi({ description: 'Index of the rule with the fewest reasons and the highest limit.' }),
  })
  .openapi('PolicyRefusal', { description: 'Only for `policy_refused`.' }) as unknown as z.ZodType<PolicyRefusal>

export const problemSchema = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(codes),
    detail: z.string().optional(),
    refusal: policyRefusalSchema.optional(),
    requestId: z.string(),
    retryable: z.boolean(),
  })
  .openapi('Problem', { description: 'RFC 9457. `code` is stable; /docs/errors says what to do about each.' })
