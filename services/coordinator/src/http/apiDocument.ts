import {
  approval,
  endpoints,
  logInfo,
  loginProvider,
  ownerOpening,
  policy,
  policyRefusal,
  problem,
  shownOpening,
  stamp,
  txMetadata,
  typedData,
  typedDataMember,
} from '@countersign/protocol'
import { type ErrorCode, errorCodes } from '@countersign/protocol/errorCodes'
import { isOf, list, type ObjectSchema, object, type Schema, string } from '@countersign/protocol/schema'
import { blockSchemas, receiptSchema } from '@countersign/receipt'
import { z } from 'zod'
import type { ApiDocument, Operation } from './docsPage.ts'
import { type RouteWords, routes } from './routes.ts'
import { isOptional, type JsonSchema, type SchemaWords, toComponent, toJsonSchema } from './toJsonSchema.ts'

const words = (description: string): JsonSchema => ({ description })
const toReference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const ofWallet: SchemaWords = {
  wallet: words(
    'Address of the wallet that signs: the user’s wallet or one of their vaults. Default: the user’s wallet.',
  ),
  rule: words('Required for a vault: the index of the rule that is to allow this. No other rule is checked.'),
  approvals: words('Passkey approvals, if the vault’s rule requires them.'),
  stamp: words('Signature of the browser’s key over this request. Required if the session has a key.'),
}
const ofSignature: SchemaWords = { signature: words('r ‖ s ‖ v, with low s and v = 27 or 28.') }
const ofTypedData: SchemaWords = {
  '': words('EIP-712. Integers are decimal strings, hex, or numbers within 2^53.'),
  types: { additionalProperties: toJsonSchema(list(typedDataMember), { findReference: () => undefined }) },
}
const ofMode: SchemaWords = { mode: words('Only present if the hardware is simulated.') }
const empty = object({})

/** Named schemas of the document, with descriptions that only the document needs. */
const components: Readonly<Record<string, readonly [schema: Schema, words?: SchemaWords]>> = {
  Problem: [
    problem,
    {
      '': words('RFC 9457. `code` is stable; /docs/errors explains each code.'),
      code: { enum: Object.keys(errorCodes) },
      budget: words('Only present with `budget_exceeded`: the index of the budget in the policy.'),
      left: words(
        'Only present with `budget_exceeded`: what the budget still allows, in the smallest unit of the asset.',
      ),
    },
  ],
  PolicyRefusal: [
    policyRefusal,
    {
      '': words('Only present with `policy_refused`.'),
      reasons: words('Reasons that apply to the whole request.'),
      nearest: words('Index of the rule with the fewest reasons, then the highest limit.'),
    },
  ],
  LoginProviders: [endpoints['GET /auth'].response],
  LoginProvider: [
    loginProvider,
    { id: { description: 'Sign in at `/auth/<id>`.', example: 'google' }, name: { example: 'Google' } },
  ],
  SessionUser: [endpoints['GET /auth/me'].response, { id: { format: 'uuid' } }],
  TokenRequest: [endpoints['POST /auth/:provider/token'].request],
  TokenSession: [endpoints['POST /auth/:provider/token'].response],
  SessionInfo: [endpoints['GET /auth/session'].response, { time: words('The service’s clock.') }],
  SessionList: [endpoints['GET /auth/sessions'].response, { 'sessions[].id': words('For `POST /auth/logout`.') }],
  LogoutRequest: [endpoints['POST /auth/logout'].request],
  Ok: [endpoints['POST /auth/logout'].response],
  Empty: [empty],
  WalletInfo: [
    endpoints['GET /wallet/me'].response,
    {
      provenance: words('Entropy sample of the wallet’s creation. Never changes.'),
      'provenance.entropyHash': words('SHA-256 of the sample.'),
      'provenance.entropySig': words('The source’s signature over the sample: Ed25519, or BLS for a beacon.'),
    },
  ],
  TransactionList: [
    endpoints['GET /wallet/transactions'].response,
    {
      ...Object.fromEntries(
        [0, 1, 2].flatMap((form) => [
          [`transactions[].${form}.status`, words('Status of the proof.')],
          [`transactions[].${form}.walletAddress`, words('Only present if a vault signed.')],
        ]),
      ),
      'transactions[].0.data': words('Up to the first 68 bytes.'),
      'transactions[].2.kind': { pattern: undefined, enum: ['off-chain', 'address', 'revocation'] },
      nextCursor: words('Cursor of the next page; null on the last page.'),
    },
  ],
  VaultList: [endpoints['GET /vaults'].response],
  VaultInfo: [endpoints['POST /vaults'].response, { policyHash: words('SHA-256 of the policy’s canonical JSON.') }],
  Policy: [
    policy,
    {
      '': {
        description: 'The rules of a vault, with sorted lists. See `packages/policy/spec/policy-v1.md`.',
        properties: { version: { type: 'number', enum: [1] } },
        required: ['version'],
      },
    },
  ],
  CreateVaultRequest: [
    endpoints['POST /vaults'].request,
    { address: words('Restores an existing vault with this address.') },
  ],
  SignVaultRequest: [
    endpoints['POST /vaults/:address/sign'].request,
    {
      '0.digest': words('keccak256 of the unsigned transaction in txMetadata.'),
      ...Object.fromEntries([0, 1].map((form) => [`${form}.rule`, words('Index of a rule of kind `spend`.')])),
    },
  ],
  SignVaultResponse: [endpoints['POST /vaults/:address/sign'].response, ofSignature],
  VaultBudget: [
    endpoints['GET /vaults/:address/budget'].response,
    {
      time: words('The service’s time in seconds, which decides `left`.'),
      sequence: words('How often the vault’s state has changed.'),
      budgets: words('In the order of the policy.'),
      revoked: words('Public keys of agents.'),
      proof: words('Null before the first change.'),
    },
  ],
  RevokeRequest: [endpoints['POST /vaults/:address/revoke'].request, { key: words('The agent’s public key.') }],
  RevokeResponse: [endpoints['POST /vaults/:address/revoke'].response],
  SignDigestResponse: [endpoints['POST /sign/digest'].response, ofSignature],
  SignDigestRequest: [
    endpoints['POST /sign/digest'].request,
    { digest: words('keccak256 of the unsigned transaction in txMetadata.'), ...ofWallet },
  ],
  TxMetadata: [
    txMetadata,
    {
      '': words('An EIP-1559 transaction without an access list. Amounts are decimal strings in wei.'),
    },
  ],
  Approval: [
    approval,
    {
      '': words(
        'A passkey’s WebAuthn assertion over the challenge of one signature, or the signature of an agent’s key. Bytes are in hex.',
      ),
      approver: words('Index in the policy’s approvers. Sort the list by it.'),
      signature: words('ES256 in DER, or Ed25519 by an agent.'),
    },
  ],
  SignOffChainResponse: [endpoints['POST /sign/message'].response, ofSignature],
  Opening: [
    shownOpening,
    {
      '': words(
        'The opening of the proof’s commitment. Store it: the service does not, and without it the signed content cannot be proven.',
      ),
    },
  ],
  TypedData: [typedData, ofTypedData],
  SignMessageRequest: [
    endpoints['POST /sign/message'].request,
    { message: words('The message’s bytes, signed with EIP-191.'), ...ofWallet },
  ],
  SignTypedDataRequest: [endpoints['POST /sign/typed-data'].request, { ...ofTypedData, ...ofWallet }],
  SignAuthorizationRequest: [
    endpoints['POST /sign/authorization'].request,
    {
      chainId: { minimum: 1 },
      address: words('The contract to delegate to. The operator lists the allowed addresses.'),
    },
  ],
  Stamp: [stamp, { signature: words('ECDSA P-256 with SHA-256, r ‖ s.') }],
  OwnerOpening: [ownerOpening],
  AttestRequest: [endpoints['POST /wallet/attest'].request],
  AttestResponse: [endpoints['POST /wallet/attest'].response],
  ProofPayload: [
    endpoints['GET /proof/:slug'].response,
    {
      kind: {
        description: 'Absent for transactions.',
        enum: ['authorization', 'off-chain', 'address', 'revocation'],
      },
      txHash: words(
        'The hash in the event: of the transaction, the signed authorization or the statement, or the commitment.',
      ),
      chainId: words('0 for off-chain signatures, addresses and revocations.'),
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
      hash: words('SHA-256 of the origin, for paths under `/log/<hash>`.'),
      key: words('The verifier key, `name+id+key`.'),
      size: words('Size of the newest cosigned checkpoint; 0 before the first.'),
    },
  ],
  Health: [endpoints['GET /health'].response, ofMode],
  Readiness: [
    endpoints['GET /health/ready'].response,
    {
      ...ofMode,
      missing: words('Witnesses and logs that don’t respond, although enough others do: `witness NAME`, `log ORIGIN`.'),
    },
  ],
  CoordinatorAttestation: [
    endpoints['GET /health/attestation'].response,
    {
      signature: words('Ed25519 by publicKey over "countersign/health-nonce/v1", a zero byte, and the nonce.'),
      webhookKeys: words('Only present with webhooks: the keys that sign them. Null until the service knows them.'),
      'webhookKeys[].key': words('An Ed25519 key, `whpk_` and base64.'),
      'webhookKeys[].signature': words(
        'Ed25519 by publicKey over "countersign/webhook-key/v1", a zero byte, and the 32 bytes of the key.',
      ),
    },
  ],
}

/** Copies of a schema, such as optional ones, share its members. */
const toKey = (schema: Schema): unknown => schema.members ?? schema
const names = new Map(Object.entries(components).map(([name, [schema]]) => [toKey(schema), name]))

function findReference(schema: Schema): JsonSchema | undefined {
  const name = names.get(toKey(schema))
  return name === undefined ? undefined : toReference(name)
}

/** For schemas of `@countersign/receipt`. */
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

/** POST calls without a request schema accept an empty object. A body that may be empty can be left out. */
function toBody({ request, form }: Shapes) {
  const schema = request ?? empty
  if (form === undefined) return { required: !isOf(schema, {}), content: toJsonContent(schema) }
  const fields = { ...toJsonSchema(form, { findReference }), additionalProperties: {} }
  return { required: true, content: { 'application/x-www-form-urlencoded': { schema: fields } } }
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

/** Error codes by status, including those that any call can return. */
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
      ...(words.needsSession && { security: [{ session: [] }, { directSession: [] }] }),
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
      description: 'Wallets with a public proof for every signature. Changes to this API are backward compatible.',
      license: { name: 'AGPL-3.0-only' },
    },
    servers: [{ url: about.publicUrl }],
    components: {
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: about.sessionCookie },
        directSession: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: '`Session <secret>`, with the secret from `POST /auth/{provider}/token`.',
        },
      },
      schemas: {
        ...Object.fromEntries(schemas),
        AttestationReceiptV1: toReceiptSchema(receiptSchema),
        AttestationReceiptV2: toReceiptSchema(blockSchemas.attestation),
      },
    },
    paths,
  }
}
