import {
  approval,
  endpoints,
  logInfo,
  loginProvider,
  policy,
  policyRefusal,
  problem,
  shownOpening,
  txMetadata,
  typedData,
  typedDataMember,
} from '@countersign/protocol'
import { type ErrorCode, errorCodes } from '@countersign/protocol/errorCodes'
import { list, type ObjectSchema, object, type Schema, string } from '@countersign/protocol/schema'
import { blockSchemas, receiptSchema } from '@countersign/receipt'
import { z } from 'zod'
import type { ApiDocument, Operation } from './docsPage.ts'
import { type RouteWords, routes } from './routes.ts'
import { isOptional, type JsonSchema, type SchemaWords, toComponent, toJsonSchema } from './toJsonSchema.ts'

const words = (description: string): JsonSchema => ({ description })
const toReference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const ofWallet: SchemaWords = {
  wallet: words('Which of the user’s wallets signs: a vault or their own; without it their own.'),
  approvals: words('For a vault whose rule asks for some.'),
}
const ofSignature: SchemaWords = { signature: words('r ‖ s ‖ v, with a low s and v = 27 or 28.') }
const ofTypedData: SchemaWords = {
  '': words('EIP-712. Integers are decimal strings, hex, or numbers within 2^53.'),
  types: { additionalProperties: toJsonSchema(list(typedDataMember), { findReference: () => undefined }) },
}
const ofMode: SchemaWords = { mode: words('Only where the silicon is simulated.') }
const empty = object({})

/** The schemas that have a name in the document, with what only the document says of them. */
const components: Readonly<Record<string, readonly [schema: Schema, words?: SchemaWords]>> = {
  Problem: [
    problem,
    {
      '': words('RFC 9457. `code` is stable; /docs/errors says what to do about each.'),
      code: { enum: Object.keys(errorCodes) },
    },
  ],
  PolicyRefusal: [
    policyRefusal,
    {
      '': words('Only for `policy_refused`.'),
      reasons: words('Of the request as a whole.'),
      nearest: words('Index of the rule with the fewest reasons and the highest limit.'),
    },
  ],
  LoginProviders: [endpoints['GET /auth'].response],
  LoginProvider: [
    loginProvider,
    { id: { description: 'Sign in at `/auth/<id>`.', example: 'google' }, name: { example: 'Google' } },
  ],
  SessionUser: [endpoints['GET /auth/me'].response, { id: { format: 'uuid' } }],
  Ok: [endpoints['POST /auth/logout'].response],
  Empty: [empty],
  WalletInfo: [
    endpoints['GET /wallet/me'].response,
    {
      provenance: words('The witness of provisioning; it never changes.'),
      'provenance.entropyHash': words('SHA-256 of the sample drawn when the wallet was made.'),
      'provenance.entropySig': words('The source’s signature over that sample: Ed25519, or BLS of a beacon.'),
    },
  ],
  TransactionList: [
    endpoints['GET /wallet/transactions'].response,
    {
      ...Object.fromEntries(
        [0, 1, 2].flatMap((form) => [
          [`transactions[].${form}.status`, words('Of its proof.')],
          [`transactions[].${form}.walletAddress`, words('Only where a vault signed.')],
        ]),
      ),
      'transactions[].0.data': words('At most the first 68 bytes.'),
      'transactions[].2.kind': { pattern: undefined, enum: ['off-chain', 'address'] },
      nextCursor: words('For the next page; null on the last.'),
    },
  ],
  VaultList: [endpoints['GET /vaults'].response],
  VaultInfo: [endpoints['POST /vaults'].response, { policyHash: words('SHA-256 of the policy’s canonical JSON.') }],
  Policy: [
    policy,
    {
      '': {
        description: 'The rules of a vault, each list in its order: `packages/policy/spec/policy-v1.md`.',
        properties: { version: { type: 'number', enum: [1] } },
        required: ['version'],
      },
    },
  ],
  CreateVaultRequest: [
    endpoints['POST /vaults'].request,
    { address: words('Of a vault that was made before, which the service may have lost since.') },
  ],
  SignDigestResponse: [endpoints['POST /sign/digest'].response, ofSignature],
  SignDigestRequest: [
    endpoints['POST /sign/digest'].request,
    { digest: words('keccak256 of the unsigned transaction that txMetadata describes.'), ...ofWallet },
  ],
  TxMetadata: [
    txMetadata,
    {
      '': words('An EIP-1559 transaction with an empty access list; amounts are decimal strings in wei.'),
    },
  ],
  Approval: [
    approval,
    {
      '': words('A WebAuthn assertion over the challenge of one signature; bytes in hex.'),
      approver: words('Index among the policy’s approvers; the list is by ascending index.'),
      signature: words('ES256, in DER.'),
    },
  ],
  SignOffChainResponse: [endpoints['POST /sign/message'].response, ofSignature],
  Opening: [
    shownOpening,
    {
      '': words(
        'What opens the commitment of the proof. The service does not keep it: without it nothing can show what was signed.',
      ),
    },
  ],
  TypedData: [typedData, ofTypedData],
  SignMessageRequest: [
    endpoints['POST /sign/message'].request,
    { message: words('The bytes of the message, signed as EIP-191 has it.'), ...ofWallet },
  ],
  SignTypedDataRequest: [endpoints['POST /sign/typed-data'].request, { ...ofTypedData, ...ofWallet }],
  SignAuthorizationRequest: [
    endpoints['POST /sign/authorization'].request,
    {
      chainId: { minimum: 1 },
      address: words('The code that the wallet delegates to; the operator lists what is allowed.'),
    },
  ],
  AttestResponse: [endpoints['POST /wallet/attest'].response],
  ProofPayload: [
    endpoints['GET /proof/:slug'].response,
    {
      kind: {
        description: 'Only where it is not a transaction.',
        enum: ['authorization', 'off-chain', 'address'],
      },
      txHash: words(
        'What the event names: the transaction’s hash, that of the signed authorization, the commitment, or the hash of what is stated about an address.',
      ),
      chainId: words('0 for a signature that is off the chain, and for an address.'),
      kmsQuoteVerified: words('Whether this service verified the quote. Verify it yourself.'),
      receipt: {
        anyOf: [toReference('AttestationReceiptV1'), toReference('AttestationReceiptV2'), { type: 'null' }],
      },
    },
  ],
  LogList: [endpoints['GET /log'].response],
  LogInfo: [
    logInfo,
    {
      hash: words('SHA-256 of the origin: its parts are at `/log/<hash>`.'),
      key: words('The verifier key, `name+id+key`.'),
      size: words('Of the newest cosigned checkpoint; 0 before the first.'),
    },
  ],
  Health: [endpoints['GET /health'].response, ofMode],
  Readiness: [
    endpoints['GET /health/ready'].response,
    {
      ...ofMode,
      missing: words('What does not answer, while the rest is enough: `witness NAME`, `log ORIGIN`.'),
    },
  ],
  CoordinatorAttestation: [
    endpoints['GET /health/attestation'].response,
    {
      signature: words('Ed25519 by publicKey over "countersign/health-nonce/v1", a zero byte, and the nonce.'),
      webhookKeys: words('Only where there are webhooks: the keys that sign them. Null while they are not known.'),
      'webhookKeys[].key': words('An Ed25519 key, `whpk_` and base64.'),
      'webhookKeys[].signature': words(
        'Ed25519 by publicKey over "countersign/webhook-key/v1", a zero byte, and the 32 bytes of the key.',
      ),
    },
  ],
}

/** Copies of a schema, such as an optional one, share its members. */
const toKey = (schema: Schema): unknown => schema.members ?? schema
const names = new Map(Object.entries(components).map(([name, [schema]]) => [toKey(schema), name]))

function findReference(schema: Schema): JsonSchema | undefined {
  const name = names.get(toKey(schema))
  return name === undefined ? undefined : toReference(name)
}

/** Of `@countersign/receipt`, which declares them with the other blocks. */
function toReceiptSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema)
  return json
}

type Shapes = { query?: ObjectSchema; headers?: ObjectSchema; request?: Schema; form?: Schema; response?: Schema }

function toParameters(path: string, { parameters = {} }: RouteWords, { query, headers }: Shapes) {
  const inPath = Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name = '']) => [name, string()]))
  const places = { path: inPath, query: query?.members ?? {}, header: headers?.members ?? {} }
  return Object.entries(places).flatMap(([place, members]) =>
    Object.entries(members).map(([name, member]) => {
      const own = parameters[name] ?? {}
      const schema = { ...toJsonSchema(member, { findReference }), ...own }
      const { description } = own
      return { name, in: place, required: !isOptional(member), schema, ...(description && { description }) }
    }),
  )
}

/** Calls without a body of their own take an empty one. */
function toBody({ request, form }: Shapes) {
  if (form === undefined) return { required: request !== undefined, content: toJsonContent(request ?? empty) }
  const schema = { ...toJsonSchema(form, { findReference }), additionalProperties: {} }
  return { required: true, content: { 'application/x-www-form-urlencoded': { schema } } }
}

const toJsonContent = (schema: Schema) => ({ 'application/json': { schema: toJsonSchema(schema, { findReference }) } })

function toSuccesses({ answers, types = [] }: RouteWords, { response }: Shapes) {
  const content = response ? toJsonContent(response) : Object.fromEntries(types.map((type) => [type, toBytes(type)]))
  const [bodied] = Object.keys(content).length === 0 ? [] : Object.keys(answers)
  return Object.entries(answers).map(([status, description]) => [
    status,
    { description, ...(status === bodied && { content }) },
  ])
}

function toBytes(type: string): { schema: JsonSchema } {
  if (type === 'application/json') return { schema: { type: 'object', additionalProperties: {} } }
  return { schema: { type: 'string', ...(!type.startsWith('text/') && { format: 'binary' }) } }
}

/** By status, each with its codes; with the failures that any call can meet. */
function toFailures({ failures, hasPages }: RouteWords) {
  const content = {
    'application/problem+json': { schema: toReference('Problem') },
    ...(hasPages && { 'text/html': { schema: { type: 'string' } } }),
  }
  const byStatus = Map.groupBy<number, ErrorCode>(
    [...failures, 'shutting_down', 'internal'],
    (code) => errorCodes[code].status,
  )
  return [...byStatus].map(([status, codes]) => [status, { description: codes.join(', '), content }])
}

/** The OpenAPI document of all routes. */
export function createDocument(about: { publicUrl: string; version: string; sessionCookie: string }): ApiDocument {
  const paths: Record<string, Record<string, Operation>> = {}
  for (const [name, words] of Object.entries(routes)) {
    const [method = '', path = ''] = name.split(' ')
    const shapes: Shapes = endpoints[name as keyof typeof endpoints] ?? {}
    const parameters = toParameters(path, words, shapes)
    const item = path.replace(/:(\w+)(?:\{[^}]*\})?/g, '{$1}')
    paths[item] ??= {}
    paths[item][method.toLowerCase()] = {
      summary: words.summary,
      ...(words.description && { description: words.description }),
      ...(words.needsSession && { security: [{ session: [] }] }),
      ...(parameters.length > 0 && { parameters }),
      ...(method === 'POST' && { requestBody: toBody(shapes) }),
      responses: Object.fromEntries([...toSuccesses(words, shapes), ...toFailures(words)]),
    }
  }
  const schemas = Object.entries(components).map(([name, [schema, words]]) => [
    name,
    toComponent(schema, { findReference, words }),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Countersign',
      version: about.version,
      description: 'Wallets whose every signature comes with a public proof. This interface only grows.',
      license: { name: 'AGPL-3.0-only' },
    },
    servers: [{ url: about.publicUrl }],
    components: {
      securitySchemes: { session: { type: 'apiKey', in: 'cookie', name: about.sessionCookie } },
      schemas: {
        ...Object.fromEntries(schemas),
        AttestationReceiptV1: toReceiptSchema(receiptSchema),
        AttestationReceiptV2: toReceiptSchema(blockSchemas.attestation),
      },
    },
    paths,
  }
}
