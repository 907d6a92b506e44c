import { type Endpoint, MAX_RETURN_TO_LENGTH } from '@countersign/protocol'
import type { CoordinatorErrorCode } from '../errors.ts'

/* The text of each route in /openapi.json and /docs/api. The protocol's `endpoints` have the shapes, under the same names. */

export type RouteWords = {
  summary: string
  description?: string
  needsSession?: true
  /** Descriptions and examples of path, query and header parameters. */
  parameters?: Readonly<Record<string, { description?: string; example?: string }>>
  /** Successful responses by status. Only the first has a body. */
  answers: Readonly<Record<number, string>>
  /** Media types of that body, unless it is JSON with the protocol's schema. */
  types?: readonly string[]
  /** In addition to the codes that any call can return. */
  failures: readonly CoordinatorErrorCode[]
  /** Whether browsers get an HTML page for failures. */
  hasPages?: true
}

/** Routes outside the protocol: log tiles, whose paths have several segments, and the documentation. */
type OtherRoute =
  | 'GET /log/:hash/tile/:path{.+}'
  | 'GET /'
  | 'GET /openapi.json'
  | 'GET /docs'
  | 'GET /docs/api'
  | 'GET /docs/errors'
  | 'GET /docs/:path{.+}'

export type RouteName = Endpoint | OtherRoute

type Codes = readonly CoordinatorErrorCode[]
const session: Codes = [
  'origin_not_allowed',
  'not_authenticated',
  'session_expired',
  'key_binding_mismatch',
  'database_unavailable',
  'rate_limited',
]
const post: Codes = ['invalid_json', 'invalid_request', 'body_too_large', 'unsupported_media_type']
const enclave: Codes = ['enclave_unavailable', 'collateral_stale', 'log_unavailable']
const deriving: Codes = ['grant_invalid', 'attestation_invalid', ...enclave]
const signing: Codes = [
  'wallet_not_provisioned',
  'quota_spent',
  'grant_invalid',
  'stamp_missing',
  'stamp_invalid',
  'stamp_time',
  'attestation_invalid',
  'signature_invalid',
  'entropy_unavailable',
  ...enclave,
]
const counting: Codes = ['budget_exceeded', 'budget_time', 'budget_unavailable']
const vault: Codes = ['vault_not_found', 'policy_refused', 'approvals_missing', 'approval_invalid', ...counting]
const transaction: Codes = [
  'invalid_digest',
  'invalid_tx_metadata',
  'digest_mismatch',
  'unsupported_transaction',
  'chain_not_allowed',
]
const typedData: Codes = ['invalid_typed_data', 'message_too_large', 'chain_not_allowed']
const proof: Codes = ['proof_not_found', 'rate_limited', 'database_unavailable', 'receipt_unavailable']
const log: Codes = ['not_found', 'rate_limited', 'database_unavailable']
const offChain =
  'Each call creates a new signature with its own proof. The proof shows publicly that the wallet signed something at this time, and a commitment to the content. Content and signature stay private, and the service stores neither. The service returns the opening once: if the response is lost, the proof can never be opened.'
const opened = { 200: 'The signature, the slug of its proof, and the opening of its commitment' }
const unchanged = { 304: 'Not modified since the given ETag' }
const provider = { provider: { example: 'google' } }
const hash = { description: 'SHA-256 of the origin, in lower-case hex.' }

export const routes: Readonly<Record<RouteName, RouteWords>> = {
  'GET /': {
    summary: 'Redirects to the documentation',
    answers: { 302: 'Redirect to /docs' },
    failures: ['origin_not_allowed'],
  },
  'GET /auth': {
    summary: 'List the identity providers',
    description:
      'If the caller prefers `text/html`, redirects to the sign-in of the first provider and keeps the query.',
    answers: { 200: 'The identity providers', 302: 'Redirect to the sign-in of the first provider, for browsers' },
    failures: ['rate_limited'],
  },
  'POST /auth/:provider/token': {
    summary: 'Open a session from an ID token',
    description:
      'For pages that sign in at the provider themselves. The token’s nonce is a hash of the login secret and the browser’s key. There is no cookie: send `Authorization: Session <secret>`.',
    parameters: provider,
    answers: { 200: 'The session’s secret' },
    failures: [
      ...post,
      'origin_not_allowed',
      'oauth_exchange_failed',
      'session_not_bound',
      'provider_unavailable',
      'key_binding_mismatch',
      'attestation_invalid',
      'not_found',
      'rate_limited',
      ...enclave,
      'database_unavailable',
    ],
  },
  'GET /auth/me': {
    summary: 'Get the signed-in user',
    needsSession: true,
    answers: { 200: 'The user' },
    failures: session,
  },
  'GET /auth/session': {
    summary: 'Get this session',
    description: 'Shows whether the session needs stamps, and the service’s clock, which stamps are checked against.',
    needsSession: true,
    answers: { 200: 'The session' },
    failures: session,
  },
  'GET /auth/sessions': {
    summary: 'List the user’s open sessions, newest first',
    needsSession: true,
    answers: { 200: 'The sessions' },
    failures: session,
  },
  'POST /auth/logout': {
    summary: 'Sign out',
    description: 'Ends this session, another one by its `session` id, or with `all` every session of the user.',
    needsSession: true,
    answers: { 200: 'The session has ended. If it was this one, its cookie is cleared' },
    failures: [...session, ...post],
  },
  'GET /auth/:provider': {
    summary: 'Start a sign-in',
    description:
      'Navigate the whole page here. The service redirects to the identity provider. After a sign-out, it makes the provider ask for the account.',
    parameters: {
      ...provider,
      return_to: {
        description: `Page on an allowed origin to return to, up to ${MAX_RETURN_TO_LENGTH} characters.`,
      },
      client_key: {
        description:
          'The browser’s P-256 key, uncompressed, in hex. The session then signs only requests with a stamp of this key.',
      },
    },
    answers: { 302: 'Redirect to the identity provider, with a login cookie' },
    failures: [
      'invalid_request',
      'origin_not_allowed',
      'provider_unavailable',
      'not_found',
      'rate_limited',
      'database_unavailable',
    ],
    hasPages: true,
  },
  'GET /auth/:provider/callback': {
    summary: 'Complete a sign-in',
    description: 'The identity provider redirects the browser here.',
    parameters: provider,
    answers: {
      302: 'Redirect to the app with the session cookie, or with `sign_in=cancelled` in the query if the user cancelled',
    },
    failures: [
      'origin_not_allowed',
      'oauth_state_invalid',
      'oauth_exchange_failed',
      'oauth_refused',
      'provider_unavailable',
      'grant_invalid',
      'session_not_bound',
      'key_binding_mismatch',
      'attestation_invalid',
      'not_found',
      'rate_limited',
      ...enclave,
      'database_unavailable',
    ],
    hasPages: true,
  },
  'POST /auth/:provider/form': {
    summary: 'Receive the form of a provider with `form_post`',
    description: 'Accepts any origin, because it only redirects to the callback, which makes all checks.',
    parameters: provider,
    answers: { 303: 'Redirect to the callback with the known fields of the form' },
    failures: [
      'origin_not_allowed',
      'invalid_request',
      'body_too_large',
      'unsupported_media_type',
      'not_found',
      'rate_limited',
    ],
  },
  'GET /wallet/me': {
    summary: 'Get the user’s wallet',
    needsSession: true,
    answers: { 200: 'The wallet' },
    failures: [...session, 'wallet_not_found'],
  },
  'GET /wallet/transactions': {
    summary: 'List what the user signed, newest first',
    needsSession: true,
    parameters: {
      limit: { description: '1 to 100. Default: 20.' },
      cursor: { description: '`nextCursor` of the previous page.' },
    },
    answers: { 200: 'A page of the list, empty if the user has no wallet' },
    failures: [...session, 'invalid_request'],
  },
  'POST /wallet/provision': {
    summary: 'Create the user’s wallet',
    description: 'Idempotent: a repeated call returns the same wallet.',
    needsSession: true,
    answers: { 200: 'The wallet' },
    failures: [...session, ...post, 'entropy_unavailable'],
  },
  'POST /wallet/attest': {
    summary: 'Attest the owner of the wallet’s address',
    description:
      'Creates a proof that the address belongs to this enclave and to this user, without a signature by the wallet. The proof has only a commitment to the user; `owner` in the response opens it. A repeated call returns the same slug.',
    needsSession: true,
    answers: { 200: 'The slug of the proof, and the opening of the owner commitment' },
    failures: [...session, ...post, ...signing],
  },
  'GET /vaults': {
    summary: 'List the user’s vaults, oldest first',
    needsSession: true,
    answers: { 200: 'The vaults' },
    failures: [...session, ...deriving],
  },
  'POST /vaults': {
    summary: 'Create a vault',
    description:
      'Derives the address from the policy, which can never change. Addresses in the policy may have an EIP-55 checksum, and its lists any order: the response has the policy in canonical form. The service responds after it has read the policy back from IPFS. Keep a copy of the policy: without it the key is lost. Idempotent: the same policy returns the same vault. A user can have 100 vaults. To restore a vault, send its `address` too: the limit and the checks for new rules then don’t apply.',
    needsSession: true,
    answers: { 201: 'The vault' },
    failures: [
      ...session,
      ...post,
      'invalid_policy',
      'vault_not_found',
      'too_many_vaults',
      'policy_not_pinned',
      ...deriving,
    ],
  },
  'POST /vaults/:address/attest': {
    summary: 'Attest the rules of a vault’s address',
    description:
      'Like `POST /wallet/attest`, with the hash of the policy, so that you can check the vault before you fund it.',
    needsSession: true,
    answers: { 200: 'The slug of the proof, and the opening of the owner commitment' },
    failures: [...session, ...post, ...signing, 'vault_not_found'],
  },
  'POST /vaults/:address/sign': {
    summary: 'Sign a payment of a vault without a session',
    description:
      'For agents: the approvals replace the session, so the policy’s rule must have `session` false. The enclave verifies them and counts the payment against the vault’s budgets. An unknown vault gets the same response as a wrong approval. A body can have 4 KiB.',
    answers: { 200: 'The signature, the slug of its proof, and for typed data the opening of its commitment' },
    failures: [
      'origin_not_allowed',
      'rate_limited',
      'database_unavailable',
      'approval_invalid',
      'policy_refused',
      'key_binding_mismatch',
      'quota_spent',
      'attestation_invalid',
      'signature_invalid',
      'entropy_unavailable',
      ...enclave,
      ...post,
      ...counting,
      ...transaction,
      ...typedData,
    ],
  },
  'GET /vaults/:address/budget': {
    summary: 'Get what is left of a vault’s budgets',
    description:
      'With a proof: the vault’s state, its path to the root of the table in `entry`, and the path of `entry` to a cosigned checkpoint.',
    needsSession: true,
    answers: { 200: 'The budgets, and the revoked keys of agents' },
    failures: [...session, 'invalid_request', 'vault_not_found', 'budget_unavailable', 'log_unavailable'],
  },
  'POST /vaults/:address/revoke': {
    summary: 'Revoke an agent’s key',
    description:
      'With a session of the owner, or without one and with the approval of one passkey of the vault: kind `revocation`, rule 255, and as digest the SHA-256 of the key. Responds when witnesses have cosigned the revocation, which is final. A repeated call returns the same slug. A body can have 4 KiB.',
    answers: { 200: 'The slug of the proof' },
    failures: [...session, ...post, ...signing, 'approval_invalid', 'vault_not_found', 'budget_unavailable'],
  },
  'POST /sign/digest': {
    summary: 'Sign a transaction',
    description:
      'A repeated call with the same digest returns the same signature and slug. The proof makes the signature public, even if the transaction is never broadcast.',
    needsSession: true,
    answers: { 200: 'The signature and the slug of its proof' },
    failures: [...session, ...post, ...signing, ...vault, ...transaction],
  },
  'POST /sign/message': {
    summary: 'Sign a message',
    description: `EIP-191, version 0x45. ${offChain}`,
    needsSession: true,
    answers: opened,
    failures: [...session, ...post, ...signing, ...vault, 'invalid_message', 'message_too_large', 'chain_not_allowed'],
  },
  'POST /sign/typed-data': {
    summary: 'Sign typed data',
    description: `EIP-712. ${offChain}`,
    needsSession: true,
    answers: opened,
    failures: [...session, ...post, ...signing, ...vault, ...typedData],
  },
  'POST /sign/authorization': {
    summary: 'Sign an authorization',
    description:
      'EIP-7702: delegates the wallet to the code at `address`. The operator lists the allowed addresses, and `chainId` 0 is not allowed. A repeated call returns the same signature and slug. The proof makes the authorization public.',
    needsSession: true,
    answers: { 200: 'The signature and the slug of its proof' },
    failures: [...session, ...post, ...signing, 'authorization_not_allowed', 'chain_not_allowed'],
  },
  'GET /proof/:slug': {
    summary: 'Get the public proof of a signature',
    description:
      'Until the event is final on the chain, a reorganization can move it, even if the status is `complete`: fetch the proof again with the ETag in `If-None-Match`. A final proof never changes, and caches may keep it for an hour. If the caller prefers `text/html`, the service redirects to the proof’s page on the first allowed origin.',
    answers: {
      200: 'The proof in its current state',
      302: 'Redirect to the proof’s page, for browsers',
      ...unchanged,
    },
    failures: proof,
  },
  'GET /proof/:slug/events': {
    summary: 'Watch a proof',
    description:
      'Server-sent events named `proof`: one immediately, then one per change. The data is a ProofPayload, the id its ETag without quotes. The stream ends after a terminal status, or when the service stops. Each address can have 5 streams at a time.',
    parameters: { 'last-event-id': { description: 'Sent by browsers when they reconnect.' } },
    answers: { 200: 'Events', 204: 'The last event had a terminal status: no more events follow' },
    types: ['text/event-stream'],
    failures: proof,
  },
  'GET /proofs/export': {
    summary: 'Export the user’s proofs as a file',
    description:
      'A CARv1, newest proofs first. The root is an index (`countersign-export/1`) with slug, CID, transaction and time of each pinned proof. The receipts and their blocks follow. A file has up to 20,000 proofs; `next` in the root is the cursor of the next file. Each user can run two exports at a time. If blocks named in the index are missing, the download was cut short.',
    needsSession: true,
    parameters: { cursor: { description: '`next` of the previous file.' } },
    answers: { 200: 'The file' },
    types: ['application/vnd.ipld.car'],
    failures: [...session, 'invalid_request'],
  },
  'GET /ipfs/:cid': {
    summary: 'Get a block of a receipt by its CID',
    description:
      'A trustless IPFS gateway for the blocks of this service. Blocks never change. With `car`, a receipt of version 2 includes all its blocks.',
    parameters: {
      cid: { description: 'CIDv1, raw, sha2-256, in base32.' },
      format: { description: '`json`, `raw` or `car`. Overrides `Accept`.' },
    },
    answers: { 200: 'The block', ...unchanged },
    types: ['application/json', 'application/vnd.ipld.raw', 'application/vnd.ipld.car'],
    failures: ['invalid_request', 'not_found', 'not_acceptable', 'rate_limited'],
  },
  'GET /log': {
    summary: 'List the transparency logs',
    description: 'If the service has logs, every signature has an entry in one of them.',
    answers: { 200: 'The logs, each with the size of its newest checkpoint' },
    failures: ['rate_limited', 'database_unavailable'],
  },
  'GET /log/:hash/checkpoint': {
    summary: 'Get a log’s newest cosigned checkpoint',
    description: 'A note (c2sp.org/tlog-checkpoint) with the signatures of the log and its witnesses.',
    parameters: { hash },
    answers: { 200: 'The note' },
    types: ['text/plain'],
    failures: log,
  },
  'GET /log/:hash/tile/:path{.+}': {
    summary: 'Get a tile of a log',
    description:
      'See c2sp.org/tlog-tiles: `<L>/<N>[.p/<W>]` are hashes of the tree, `entries/<N>[.p/<W>]` are entries. The service has all tiles that the newest cosigned checkpoint covers. Tiles never change.',
    parameters: { hash, path: { description: 'Several segments.', example: '0/x001/234.p/56' } },
    answers: { 200: 'The tile or entry bundle' },
    types: ['application/octet-stream'],
    failures: log,
  },
  'GET /health': {
    summary: 'Check that the process is alive',
    answers: { 200: 'Alive' },
    failures: [],
  },
  'GET /health/ready': {
    summary: 'Check that the service is ready',
    answers: { 200: 'Ready' },
    failures: ['database_unavailable', 'attestation_invalid', 'log_unavailable'],
  },
  'GET /health/attestation': {
    summary: 'Get the coordinator’s attestation',
    parameters: { nonce: { description: '1 to 64 bytes in lower-case hex. The response signs them.' } },
    answers: { 200: 'The SEV-SNP report over the coordinator’s key' },
    failures: ['invalid_request', 'attestation_invalid', 'rate_limited'],
  },
  'GET /openapi.json': {
    summary: 'Get this API as OpenAPI',
    answers: { 200: 'An OpenAPI 3.1 document' },
    types: ['application/json'],
    failures: [],
  },
  'GET /docs': {
    summary: 'The documentation',
    answers: { 200: 'A page', ...unchanged },
    types: ['text/html'],
    failures: ['origin_not_allowed'],
  },
  'GET /docs/api': {
    summary: 'Read this API as a page',
    answers: { 200: 'A page', ...unchanged },
    types: ['text/html'],
    failures: ['origin_not_allowed'],
  },
  'GET /docs/errors': {
    summary: 'List the error codes',
    answers: { 200: 'A page', ...unchanged },
    types: ['text/html'],
    failures: ['origin_not_allowed'],
  },
  'GET /docs/:path{.+}': {
    summary: 'Any other file of the documentation',
    answers: { 200: 'The file', ...unchanged },
    types: ['text/html', 'text/css', 'text/javascript', 'application/json', 'image/png', 'image/svg+xml'],
    failures: ['origin_not_allowed', 'not_found'],
  },
}
