import { type Endpoint, MAX_RETURN_TO_LENGTH } from '@countersign/protocol'
import { createRoute, type RouteConfig, z } from '@hono/zod-openapi'
import type { CoordinatorErrorCode } from '../errors.ts'
import { json, pagesOf, problemsOf, text } from './responses.ts'
import {
  attestationSchema,
  attestResponseSchema,
  createVaultRequestSchema,
  emptySchema,
  healthSchema,
  loginProvidersSchema,
  logListSchema,
  okSchema,
  proofPayloadSchema,
  readinessSchema,
  sessionUserSchema,
  signAuthorizationRequestSchema,
  signDigestRequestSchema,
  signDigestResponseSchema,
  signMessageRequestSchema,
  signOffChainResponseSchema,
  signTypedDataRequestSchema,
  transactionListSchema,
  vaultInfoSchema,
  vaultListSchema,
  walletInfoSchema,
} from './schemas.ts'

/* The endpoints of the protocol as /openapi.json and /docs describe them. The handlers are beside this file: authRoutes.ts and so on. */

export type Route = RouteConfig & { getRoutingPath(): string }

const session: CoordinatorErrorCode[] = [
  'origin_not_allowed',
  'not_authenticated',
  'session_expired',
  'key_binding_mismatch',
  'database_unavailable',
  'rate_limited',
]
const post: CoordinatorErrorCode[] = ['invalid_json', 'invalid_request', 'body_too_large', 'unsupported_media_type']
const deriving: CoordinatorErrorCode[] = [
  'grant_invalid',
  'attestation_invalid',
  'enclave_unavailable',
  'collateral_stale',
  'log_unavailable',
]
const signing: CoordinatorErrorCode[] = [
  'wallet_not_provisioned',
  'quota_spent',
  'grant_invalid',
  'attestation_invalid',
  'signature_invalid',
  'entropy_unavailable',
  'enclave_unavailable',
  'collateral_stale',
  'log_unavailable',
]
const vault: CoordinatorErrorCode[] = ['vault_not_found', 'policy_refused', 'approvals_missing', 'approval_invalid']
const offChain =
  'Each call is a new signature with a proof of its own. Public are a commitment, and that the wallet signed at this time; content and signature are not, and the service keeps neither. The opening is answered once: an answer that is lost leaves a proof that nobody can open.'
const withSession = [{ session: [] }]
const provider = z.object({ provider: z.string().openapi({ example: 'google' }) })
const logHash = z.object({ hash: z.string().openapi({ description: 'SHA-256 of the origin, in lower-case hex.' }) })
const noBody = { content: { 'application/json': { schema: emptySchema } }, required: false }

const binary = () => ({ schema: z.string().openapi({ format: 'binary' }) })

const endpoints: Record<Endpoint, Omit<RouteConfig, 'method' | 'path'>> = {
  'GET /auth': {
    summary: 'The ways to sign in',
    description: 'Redirects a browser that prefers `text/html` to the sign-in of the first provider, with the query.',
    responses: {
      200: json('The identity providers', loginProvidersSchema),
      302: { description: 'To the sign-in of the first provider, for a browser' },
      ...problemsOf('rate_limited'),
    },
  },
  'GET /auth/:provider': {
    summary: 'Starts a sign-in',
    description:
      'Reached by full-page navigation; redirects to the identity provider. After a sign-out the provider is told to ask who it is.',
    request: {
      params: provider,
      query: z.object({
        return_to: z
          .string()
          .optional()
          .openapi({
            description: `A page on an allowed origin to return to, of at most ${MAX_RETURN_TO_LENGTH} characters.`,
          }),
      }),
    },
    responses: {
      302: { description: 'To the identity provider, with a login cookie.' },
      ...pagesOf(
        'invalid_request',
        'origin_not_allowed',
        'provider_unavailable',
        'not_found',
        'rate_limited',
        'database_unavailable',
      ),
    },
  },
  'GET /auth/:provider/callback': {
    summary: 'Finishes a sign-in',
    description: 'The identity provider sends the browser here.',
    request: {
      params: provider,
      query: z.object({ state: z.string(), code: z.string().optional(), error: z.string().optional() }),
    },
    responses: {
      302: {
        description:
          'Back to the app, with the session cookie; or with `sign_in=cancelled` in its query, if the user gave up.',
      },
      ...pagesOf(
        'origin_not_allowed',
        'oauth_state_invalid',
        'oauth_exchange_failed',
        'oauth_refused',
        'provider_unavailable',
        'grant_invalid',
        'key_binding_mismatch',
        'not_found',
        'rate_limited',
        'enclave_unavailable',
        'collateral_stale',
        'log_unavailable',
        'database_unavailable',
      ),
    },
  },
  'POST /auth/:provider/form': {
    summary: 'Takes the answer of a provider that posts a form',
    description: 'Any page may lead a browser here: it only leads on to the callback, which decides.',
    request: {
      params: provider,
      body: {
        content: { 'application/x-www-form-urlencoded': { schema: z.looseObject({ state: z.string() }) } },
        required: true,
      },
    },
    responses: {
      303: { description: 'To the callback, with what it reads of the form.' },
      ...problemsOf(
        'origin_not_allowed',
        'invalid_request',
        'body_too_large',
        'unsupported_media_type',
        'not_found',
        'rate_limited',
      ),
    },
  },
  'GET /auth/me': {
    summary: 'The user who is signed in',
    security: withSession,
    responses: { 200: json('The user', sessionUserSchema), ...problemsOf(...session) },
  },
  'POST /auth/logout': {
    summary: 'Ends the session',
    security: withSession,
    request: { body: noBody },
    responses: {
      200: json('The session is over and its cookie cleared', okSchema),
      ...problemsOf(...session, ...post),
    },
  },
  'GET /wallet/me': {
    summary: 'The user’s wallet',
    security: withSession,
    responses: {
      200: json('The wallet', walletInfoSchema),
      ...problemsOf(...session, 'wallet_not_found'),
    },
  },
  'GET /wallet/transactions': {
    summary: 'What the user has signed, newest first',
    security: withSession,
    request: {
      query: z.object({
        limit: z.string().optional().openapi({ description: '1 to 100; 20 if it is not given.' }),
        cursor: z.string().optional().openapi({ description: '`nextCursor` of the page before.' }),
      }),
    },
    responses: {
      200: json('A page of the list; empty for a user without a wallet', transactionListSchema),
      ...problemsOf(...session, 'invalid_request'),
    },
  },
  'POST /wallet/provision': {
    summary: 'Makes the user’s wallet',
    description: 'Idempotent: asked again, it answers the same.',
    security: withSession,
    request: { body: noBody },
    responses: {
      200: json('The wallet', walletInfoSchema),
      ...problemsOf(...session, ...post, 'entropy_unavailable'),
    },
  },
  'POST /wallet/attest': {
    summary: 'States whose the wallet’s address is',
    description:
      'A proof, without any signature of the wallet, that its address belongs to this enclave. One for each wallet: asked again, it answers the same.',
    security: withSession,
    request: { body: noBody },
    responses: {
      200: json('The slug of the proof', attestResponseSchema),
      ...problemsOf(...session, ...post, ...signing),
    },
  },
  'GET /vaults': {
    summary: 'The user’s vaults, oldest first',
    security: withSession,
    responses: { 200: json('The vaults', vaultListSchema), ...problemsOf(...session, ...deriving) },
  },
  'POST /vaults': {
    summary: 'Makes a vault',
    description:
      'Derives the address from the policy, which can never change. Addresses in the policy may have an EIP-55 checksum, and its lists any order: the response has the policy in canonical form. The service responds after it has read the policy back from IPFS. Keep a copy of the policy: without it the key is lost. Idempotent: the same policy returns the same vault. A user can have 100 vaults. To restore a vault, send its `address` too: the limit and the checks for new rules then don’t apply.',
    security: withSession,
    request: { body: { content: { 'application/json': { schema: createVaultRequestSchema } }, required: true } },
    responses: {
      201: json('The vault', vaultInfoSchema),
      ...problemsOf(
        ...session,
        ...post,
        'invalid_policy',
        'vault_not_found',
        'too_many_vaults',
        'policy_not_pinned',
        ...deriving,
      ),
    },
  },
  'POST /vaults/:address/attest': {
    summary: 'States which rules the address of a vault belongs to',
    description: 'As `POST /wallet/attest`, with the hash of the policy: proof before the first coin is sent there.',
    security: withSession,
    request: { params: z.object({ address: z.string() }), body: noBody },
    responses: {
      200: json('The slug of the proof', attestResponseSchema),
      ...problemsOf(...session, ...post, ...signing, 'vault_not_found'),
    },
  },
  'POST /sign/digest': {
    summary: 'Signs a transaction',
    description:
      'The same digest again gives the same signature and slug. A signature that was answered becomes public with its proof, whether or not the transaction is broadcast.',
    security: withSession,
    request: { body: { content: { 'application/json': { schema: signDigestRequestSchema } }, required: true } },
    responses: {
      200: json('The signature, and the slug of its proof', signDigestResponseSchema),
      ...problemsOf(
        ...session,
        ...post,
        ...signing,
        ...vault,
        'invalid_digest',
        'invalid_tx_metadata',
        'digest_mismatch',
        'unsupported_transaction',
        'chain_not_allowed',
      ),
    },
  },
  'POST /sign/message': {
    summary: 'Signs a message',
    description: `EIP-191, version 0x45. ${offChain}`,
    security: withSession,
    request: { body: { content: { 'application/json': { schema: signMessageRequestSchema } }, required: true } },
    responses: {
      200: json('The signature, the slug of its proof, and what opens its commitment', signOffChainResponseSchema),
      ...problemsOf(
        ...session,
        ...post,
        ...signing,
        ...vault,
        'invalid_message',
        'message_too_large',
        'chain_not_allowed',
      ),
    },
  },
  'POST /sign/typed-data': {
    summary: 'Signs typed data',
    description: `EIP-712. ${offChain}`,
    security: withSession,
    request: { body: { content: { 'application/json': { schema: signTypedDataRequestSchema } }, required: true } },
    responses: {
      200: json('The signature, the slug of its proof, and what opens its commitment', signOffChainResponseSchema),
      ...problemsOf(
        ...session,
        ...post,
        ...signing,
        ...vault,
        'invalid_typed_data',
        'message_too_large',
        'chain_not_allowed',
      ),
    },
  },
  'POST /sign/authorization': {
    summary: 'Signs an authorization',
    description:
      'EIP-7702: the wallet runs the code of `address` from then on. Only code that the operator lists, and never for every chain. The same authorization again gives the same signature and slug. It becomes public with its proof.',
    security: withSession,
    request: { body: { content: { 'application/json': { schema: signAuthorizationRequestSchema } }, required: true } },
    responses: {
      200: json('The signature, and the slug of its proof', signDigestResponseSchema),
      ...problemsOf(...session, ...post, ...signing, 'authorization_not_allowed', 'chain_not_allowed'),
    },
  },
  'GET /proof/:slug': {
    summary: 'The public proof of a signature',
    description:
      'Until its event is final on the chain, also while it is `complete`, ask again each time, with the ETag in If-None-Match: a reorganisation may move the event. A final proof never changes, and may be kept for an hour. Redirects a browser that prefers `text/html` to the proof’s page in the web app (the first allowed origin).',
    request: { params: z.object({ slug: z.string() }) },
    responses: {
      200: json('The proof, as far as it has come', proofPayloadSchema),
      302: { description: 'To the page of the proof, for a browser' },
      304: { description: 'Unchanged since the ETag that was sent' },
      ...problemsOf('proof_not_found', 'rate_limited', 'database_unavailable', 'receipt_unavailable'),
    },
  },
  'GET /proof/:slug/events': {
    summary: 'The proof, and each change of it',
    description:
      'Server-sent events named `proof`: the first at once, then one for each change, each with a ProofPayload as data and its ETag, without the quotes, as id. The stream ends after a terminal status, and when the service stops. At most 5 at a time for each address.',
    request: {
      params: z.object({ slug: z.string() }),
      headers: z.object({
        'last-event-id': z.string().optional().openapi({ description: 'As browsers send it when they reconnect.' }),
      }),
    },
    responses: {
      200: text('Events', 'text/event-stream'),
      204: { description: 'The last event was of a terminal status: no more will come' },
      ...problemsOf('proof_not_found', 'rate_limited', 'database_unavailable', 'receipt_unavailable'),
    },
  },
  'GET /ipfs/:cid': {
    summary: 'A block of a receipt, by its CID',
    description:
      'A trustless IPFS gateway to the blocks that this service holds. Blocks never change. As `car`, a receipt of version 2 comes with all the blocks that it names.',
    request: {
      params: z.object({ cid: z.string().openapi({ description: 'CIDv1, raw, sha2-256, in base32.' }) }),
      query: z.object({
        format: z.string().optional().openapi({ description: '`json`, `raw` or `car`; goes before `Accept`.' }),
      }),
    },
    responses: {
      200: {
        description: 'The block',
        content: {
          'application/json': { schema: z.looseObject({}) },
          'application/vnd.ipld.raw': binary(),
          'application/vnd.ipld.car': binary(),
        },
      },
      304: { description: 'Unchanged since the ETag that was sent' },
      ...problemsOf('invalid_request', 'not_found', 'not_acceptable', 'rate_limited'),
    },
  },
  'GET /log': {
    summary: 'The logs of the enclaves',
    description: 'Every signature has an entry in one of them, where the service keeps logs.',
    responses: {
      200: json('The logs, each with the size of its newest checkpoint', logListSchema),
      ...problemsOf('rate_limited', 'database_unavailable'),
    },
  },
  'GET /log/:hash/checkpoint': {
    summary: 'The newest cosigned checkpoint of a log',
    description: 'A note as c2sp.org/tlog-checkpoint has it, with the signatures of the log and of its witnesses.',
    request: { params: logHash },
    responses: {
      200: text('The note', 'text/plain'),
      ...problemsOf('not_found', 'rate_limited', 'database_unavailable'),
    },
  },
  'GET /health': {
    summary: 'Whether the process is alive',
    responses: { 200: json('Alive', healthSchema), ...problemsOf() },
  },
  'GET /health/ready': {
    summary: 'Whether it can serve',
    responses: {
      200: json('Ready', readinessSchema),
      ...problemsOf('database_unavailable', 'attestation_invalid', 'log_unavailable'),
    },
  },
  'GET /health/attestation': {
    summary: 'The coordinator’s own attestation',
    request: {
      query: z.object({
        nonce: z.string().optional().openapi({ description: '1 to 64 bytes in lower-case hex, to be signed.' }),
      }),
    },
    responses: {
      200: json('The SEV-SNP report over the coordinator’s key', attestationSchema),
      ...problemsOf('invalid_request', 'attestation_invalid', 'rate_limited'),
    },
  },
}

/** Method and path come from the endpoint's name. */
function toRoute([name, description]: [string, (typeof endpoints)[Endpoint]]): [string, Route] {
  const [method = '', path = ''] = name.split(' ')
  return [
    name,
    createRoute({
      method: method.toLowerCase() as 'get' | 'post',
      path: path.replace(/:(\w+)/g, '{$1}'),
      ...description,
    }),
  ]
}

export const routes = Object.fromEntries(Object.entries(endpoints).map(toRoute)) as Record<Endpoint, Route>

const TILE_PATH = '/log/{hash}/tile/{path}'

/** Not among the endpoints, whose parameters are one segment each. */
export const tileRoute: Route = Object.assign(
  createRoute({
    method: 'get',
    path: TILE_PATH,
    summary: 'A part of a log',
    description:
      'As c2sp.org/tlog-tiles has it: `<L>/<N>[.p/<W>]` are hashes of the tree, `entries/<N>[.p/<W>]` are entries. What the newest cosigned checkpoint covers is here, and never changes.',
    request: {
      params: logHash.extend({
        path: z.string().openapi({ description: 'Several segments.', example: '0/x001/234.p/56' }),
      }),
    },
    responses: {
      200: { description: 'The tile, or the bundle of entries', content: { 'application/octet-stream': binary() } },
      ...problemsOf('not_found', 'rate_limited', 'database_unavailable'),
    },
  }),
  { getRoutingPath: () => '/log/:hash/tile/:path{.+}' },
)

/** Not among the endpoints, whose answers are JSON. */
export const exportRoute = createRoute({
  method: 'get',
  path: '/proofs/export',
  summary: 'The user’s proofs as one file',
  description:
    'A CARv1, newest proofs first. Its root is an index (`countersign-export/1`): slug, CID, transaction and time of each proof that is pinned. Then come the receipts with all blocks that they name. A file has 20,000 proofs at most; `next` in the root is the cursor of the following one. Two of a user at a time. A file that was cut short lacks blocks that the index names.',
  security: withSession,
  request: {
    query: z.object({ cursor: z.string().optional().openapi({ description: '`next` of the file before.' }) }),
  },
  responses: {
    200: { description: 'The file', content: { 'application/vnd.ipld.car': binary() } },
    ...problemsOf(...session, 'invalid_request'),
  },
})

/** What the service says about itself; not part of the protocol. */
export const pages = {
  index: createRoute({
    method: 'get',
    path: '/',
    summary: 'Leads to this description',
    responses: { 302: { description: 'To /docs' }, ...problemsOf('origin_not_allowed') },
  }),
  openapi: createRoute({
    method: 'get',
    path: '/openapi.json',
    summary: 'This description',
    responses: { 200: json('An OpenAPI 3.1 document', z.looseObject({ openapi: z.string() })), ...problemsOf() },
  }),
  docs: createRoute({
    method: 'get',
    path: '/docs',
    summary: 'This description, to read',
    responses: { 200: text('A page', 'text/html'), ...problemsOf('origin_not_allowed') },
  }),
  docsErrors: createRoute({
    method: 'get',
    path: '/docs/errors',
    summary: 'Every error code, and what to do about it',
    responses: { 200: text('A page', 'text/html'), ...problemsOf('origin_not_allowed') },
  }),
} as const satisfies Record<string, Route>
