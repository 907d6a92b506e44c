import { type Endpoint, MAX_RETURN_TO_LENGTH } from '@countersign/protocol'
import type { CoordinatorErrorCode } from '../errors.ts'

/* The routes in words, as /openapi.json and /docs/api have them. Their shapes are those of the protocol, by the same names. */

/** What the document says of a route. */
export type RouteWords = {
  summary: string
  description?: string
  needsSession?: true
  /** Of the parameters in path, query and headers: words or an example for each. */
  parameters?: Readonly<Record<string, { description?: string; example?: string }>>
  /** By status, what is answered where nothing failed. The first has the body. */
  answers: Readonly<Record<number, string>>
  /** Media types of that body, if it is not the JSON of the protocol's schema. */
  types?: readonly string[]
  /** Besides those that any call can meet. */
  failures: readonly CoordinatorErrorCode[]
  /** Whether browsers get their failures as pages. */
  hasPages?: true
}

/** Routes that are not part of the protocol: parts of logs, whose paths have several segments, and what the service says about itself. */
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
  'attestation_invalid',
  'signature_invalid',
  'entropy_unavailable',
  ...enclave,
]
const vault: Codes = ['vault_not_found', 'policy_refused', 'approvals_missing', 'approval_invalid']
const proof: Codes = ['proof_not_found', 'rate_limited', 'database_unavailable', 'receipt_unavailable']
const log: Codes = ['not_found', 'rate_limited', 'database_unavailable']
const offChain =
  'Each call is a new signature with a proof of its own. Public are a commitment, and that the wallet signed at this time; content and signature are not, and the service keeps neither. The opening is answered once: an answer that is lost leaves a proof that nobody can open.'
const opened = { 200: 'The signature, the slug of its proof, and what opens its commitment' }
const unchanged = { 304: 'Unchanged since the ETag that was sent' }
const provider = { provider: { example: 'google' } }
const hash = { description: 'SHA-256 of the origin, in lower-case hex.' }

export const routes: Readonly<Record<RouteName, RouteWords>> = {
  'GET /': {
    summary: 'Redirects to the documentation',
    answers: { 302: 'To /docs' },
    failures: ['origin_not_allowed'],
  },
  'GET /auth': {
    summary: 'The ways to sign in',
    description: 'Redirects a browser that prefers `text/html` to the sign-in of the first provider, with the query.',
    answers: { 200: 'The identity providers', 302: 'To the sign-in of the first provider, for a browser' },
    failures: ['rate_limited'],
  },
  'GET /auth/me': {
    summary: 'The user who is signed in',
    needsSession: true,
    answers: { 200: 'The user' },
    failures: session,
  },
  'POST /auth/logout': {
    summary: 'Ends the session',
    needsSession: true,
    answers: { 200: 'The session is over and its cookie cleared' },
    failures: [...session, ...post],
  },
  'GET /auth/:provider': {
    summary: 'Starts a sign-in',
    description:
      'Reached by full-page navigation; redirects to the identity provider. After a sign-out the provider is told to ask who it is.',
    parameters: {
      ...provider,
      return_to: {
        description: `A page on an allowed origin to return to, of at most ${MAX_RETURN_TO_LENGTH} characters.`,
      },
    },
    answers: { 302: 'To the identity provider, with a login cookie.' },
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
    summary: 'Finishes a sign-in',
    description: 'The identity provider sends the browser here.',
    parameters: provider,
    answers: {
      302: 'Back to the app, with the session cookie; or with `sign_in=cancelled` in its query, if the user gave up.',
    },
    failures: [
      'origin_not_allowed',
      'oauth_state_invalid',
      'oauth_exchange_failed',
      'oauth_refused',
      'provider_unavailable',
      'grant_invalid',
      'key_binding_mismatch',
      'not_found',
      'rate_limited',
      ...enclave,
      'database_unavailable',
    ],
    hasPages: true,
  },
  'POST /auth/:provider/form': {
    summary: 'Takes the answer of a provider that posts a form',
    description: 'Any page may lead a browser here: it only leads on to the callback, which decides.',
    parameters: provider,
    answers: { 303: 'To the callback, with what it reads of the form.' },
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
    summary: 'The user’s wallet',
    needsSession: true,
    answers: { 200: 'The wallet' },
    failures: [...session, 'wallet_not_found'],
  },
  'GET /wallet/transactions': {
    summary: 'What the user has signed, newest first',
    needsSession: true,
    parameters: {
      limit: { description: '1 to 100; 20 if it is not given.' },
      cursor: { description: '`nextCursor` of the page before.' },
    },
    answers: { 200: 'A page of the list; empty for a user without a wallet' },
    failures: [...session, 'invalid_request'],
  },
  'POST /wallet/provision': {
    summary: 'Makes the user’s wallet',
    description: 'Idempotent: asked again, it answers the same.',
    needsSession: true,
    answers: { 200: 'The wallet' },
    failures: [...session, ...post, 'entropy_unavailable'],
  },
  'POST /wallet/attest': {
    summary: 'States whose the wallet’s address is',
    description:
      'A proof, without any signature of the wallet, that its address belongs to this enclave. One for each wallet: asked again, it answers the same.',
    needsSession: true,
    answers: { 200: 'The slug of the proof' },
    failures: [...session, ...post, ...signing],
  },
  'GET /vaults': {
    summary: 'The user’s vaults, oldest first',
    needsSession: true,
    answers: { 200: 'The vaults' },
    failures: [...session, ...deriving],
  },
  'POST /vaults': {
    summary: 'Makes a vault',
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
    summary: 'States which rules the address of a vault belongs to',
    description: 'As `POST /wallet/attest`, with the hash of the policy: proof before the first coin is sent there.',
    needsSession: true,
    answers: { 200: 'The slug of the proof' },
    failures: [...session, ...post, ...signing, 'vault_not_found'],
  },
  'POST /sign/digest': {
    summary: 'Signs a transaction',
    description:
      'The same digest again gives the same signature and slug. A signature that was answered becomes public with its proof, whether or not the transaction is broadcast.',
    needsSession: true,
    answers: { 200: 'The signature, and the slug of its proof' },
    failures: [
      ...session,
      ...post,
      ...signing,
      ...vault,
      'invalid_digest',
      'invalid_tx_metadata',
      'digest_mismatch',
      'unsupported_transaction',
      'chain_not_allowed',
    ],
  },
  'POST /sign/message': {
    summary: 'Signs a message',
    description: `EIP-191, version 0x45. ${offChain}`,
    needsSession: true,
    answers: opened,
    failures: [...session, ...post, ...signing, ...vault, 'invalid_message', 'message_too_large', 'chain_not_allowed'],
  },
  'POST /sign/typed-data': {
    summary: 'Signs typed data',
    description: `EIP-712. ${offChain}`,
    needsSession: true,
    answers: opened,
    failures: [
      ...session,
      ...post,
      ...signing,
      ...vault,
      'invalid_typed_data',
      'message_too_large',
      'chain_not_allowed',
    ],
  },
  'POST /sign/authorization': {
    summary: 'Signs an authorization',
    description:
      'EIP-7702: the wallet runs the code of `address` from then on. Only code that the operator lists, and never for every chain. The same authorization again gives the same signature and slug. It becomes public with its proof.',
    needsSession: true,
    answers: { 200: 'The signature, and the slug of its proof' },
    failures: [...session, ...post, ...signing, 'authorization_not_allowed', 'chain_not_allowed'],
  },
  'GET /proof/:slug': {
    summary: 'The public proof of a signature',
    description:
      'Until its event is final on the chain, also while it is `complete`, ask again each time, with the ETag in If-None-Match: a reorganisation may move the event. A final proof never changes, and may be kept for an hour. Redirects a browser that prefers `text/html` to the proof’s page in the web app (the first allowed origin).',
    answers: {
      200: 'The proof, as far as it has come',
      302: 'To the page of the proof, for a browser',
      ...unchanged,
    },
    failures: proof,
  },
  'GET /proof/:slug/events': {
    summary: 'The proof, and each change of it',
    description:
      'Server-sent events named `proof`: the first at once, then one for each change, each with a ProofPayload as data and its ETag, without the quotes, as id. The stream ends after a terminal status, and when the service stops. At most 5 at a time for each address.',
    parameters: { 'last-event-id': { description: 'As browsers send it when they reconnect.' } },
    answers: { 200: 'Events', 204: 'The last event was of a terminal status: no more will come' },
    types: ['text/event-stream'],
    failures: proof,
  },
  'GET /proofs/export': {
    summary: 'The user’s proofs as one file',
    description:
      'A CARv1, newest proofs first. Its root is an index (`countersign-export/1`): slug, CID, transaction and time of each proof that is pinned. Then come the receipts with all blocks that they name. A file has 20,000 proofs at most; `next` in the root is the cursor of the following one. Two of a user at a time. A file that was cut short lacks blocks that the index names.',
    needsSession: true,
    parameters: { cursor: { description: '`next` of the file before.' } },
    answers: { 200: 'The file' },
    types: ['application/vnd.ipld.car'],
    failures: [...session, 'invalid_request'],
  },
  'GET /ipfs/:cid': {
    summary: 'A block of a receipt, by its CID',
    description:
      'A trustless IPFS gateway to the blocks that this service holds. Blocks never change. As `car`, a receipt of version 2 comes with all the blocks that it names.',
    parameters: {
      cid: { description: 'CIDv1, raw, sha2-256, in base32.' },
      format: { description: '`json`, `raw` or `car`; goes before `Accept`.' },
    },
    answers: { 200: 'The block', ...unchanged },
    types: ['application/json', 'application/vnd.ipld.raw', 'application/vnd.ipld.car'],
    failures: ['invalid_request', 'not_found', 'not_acceptable', 'rate_limited'],
  },
  'GET /log': {
    summary: 'The logs of the enclaves',
    description: 'Every signature has an entry in one of them, where the service keeps logs.',
    answers: { 200: 'The logs, each with the size of its newest checkpoint' },
    failures: ['rate_limited', 'database_unavailable'],
  },
  'GET /log/:hash/checkpoint': {
    summary: 'The newest cosigned checkpoint of a log',
    description: 'A note as c2sp.org/tlog-checkpoint has it, with the signatures of the log and of its witnesses.',
    parameters: { hash },
    answers: { 200: 'The note' },
    types: ['text/plain'],
    failures: log,
  },
  'GET /log/:hash/tile/:path{.+}': {
    summary: 'A part of a log',
    description:
      'As c2sp.org/tlog-tiles has it: `<L>/<N>[.p/<W>]` are hashes of the tree, `entries/<N>[.p/<W>]` are entries. What the newest cosigned checkpoint covers is here, and never changes.',
    parameters: { hash, path: { description: 'Several segments.', example: '0/x001/234.p/56' } },
    answers: { 200: 'The tile, or the bundle of entries' },
    types: ['application/octet-stream'],
    failures: log,
  },
  'GET /health': {
    summary: 'Whether the process is alive',
    answers: { 200: 'Alive' },
    failures: [],
  },
  'GET /health/ready': {
    summary: 'Whether it can serve',
    answers: { 200: 'Ready' },
    failures: ['database_unavailable', 'attestation_invalid', 'log_unavailable'],
  },
  'GET /health/attestation': {
    summary: 'The coordinator’s own attestation',
    parameters: { nonce: { description: '1 to 64 bytes in lower-case hex, to be signed.' } },
    answers: { 200: 'The SEV-SNP report over the coordinator’s key' },
    failures: ['invalid_request', 'attestation_invalid', 'rate_limited'],
  },
  'GET /openapi.json': {
    summary: 'This description',
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
    summary: 'This description, to read',
    answers: { 200: 'A page', ...unchanged },
    types: ['text/html'],
    failures: ['origin_not_allowed'],
  },
  'GET /docs/errors': {
    summary: 'Every error code, and what to do about it',
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
