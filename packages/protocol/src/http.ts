import { approvals } from './approval.ts'
import { authorization } from './authorization.ts'
import { type Contents, contentSchemas, offChainKinds } from './contents.ts'
import type { OffChainKind } from './kinds.ts'
import { CLIENT_KEY_BYTES } from './login.ts'
import {
  attestAddressResponse,
  coordinatorAttestation,
  loginProviders,
  logList,
  okResponse,
  policy,
  proofPayload,
  sessionInfo,
  sessionList,
  sessionUser,
  signDigestResponse,
  slug,
  tokenSession,
  transactionPage,
  vaultBudgetInfo,
  vaultInfo,
  vaultList,
  walletInfo,
} from './resources.ts'
import {
  anyCase,
  either,
  ethereum,
  hex,
  type Infer,
  list,
  literal,
  type ObjectSchema,
  object,
  optional,
  positive,
  type Schema,
  string,
} from './schema.ts'
import { shownOpening } from './shownOpening.ts'
import { ruleIndex, stamp } from './stamp.ts'
import { txMetadata } from './txMetadata.ts'
import { typedData } from './typedData.ts'

const stamped = { stamp: optional(stamp) }
const walletUse = {
  wallet: optional(anyCase(20)),
  rule: optional(ruleIndex),
  approvals: optional(approvals),
  ...stamped,
}

/** The wallet that signs: the user's own unless it names one of their vaults, with its approvals. Another user's vault is rejected. */
export type WalletUse = Infer<ObjectSchema<typeof walletUse>>

const digestAndMetadata = { digest: anyCase(32), txMetadata }

/** The request of `POST /sign/digest`: a digest and the transaction that it must be the hash of. */
export type SignDigestRequest = Infer<ObjectSchema<typeof digestAndMetadata>>

const signDigestRequest = object({ ...digestAndMetadata, ...walletUse })
const attestRequest = object(stamped)

const spendUse = { rule: ruleIndex, approvals }
/** A payment that approvals allow without a session. */
const signVaultRequest = either(
  object({ kind: literal('transaction'), ...digestAndMetadata, ...spendUse }),
  object({ kind: literal('typed-data'), ...typedData.members, ...spendUse }),
)
const revokeRequest = object({ key: hex(32), approvals: optional(approvals), ...stamped })
/** `opening` is present for typed data. */
const signVaultResponse = object({ ...signDigestResponse.members, opening: optional(shownOpening) })

/** Without members, this session ends. */
const logoutRequest = object({ session: optional(hex(8)), all: optional(literal(true)) })
const tokenRequest = object({ idToken: string(), loginSecret: hex(32), clientKey: hex(CLIENT_KEY_BYTES) })
const createVaultRequest = object({ policy, address: optional(anyCase(20)) })

/**
 * The response to off-chain signing. Only the caller stores the opening. Without it, the proof shows that the wallet signed something, but
 * never the content.
 */
const signOffChainResponse = object({ signature: ethereum(65), slug, opening: shownOpening })
export type SignOffChainResponse = Infer<typeof signOffChainResponse>

type OffChainEndpoint<Request> = { request: Schema<Request & WalletUse>; response: typeof signOffChainResponse }

/** A value for each endpoint that signs off-chain content. */
export function toSignEndpoints<Value>(toValue: (kind: OffChainKind) => Value) {
  const entries = offChainKinds.map((kind) => [`POST /sign/${kind}`, toValue(kind)])
  return Object.fromEntries(entries) as { [Kind in OffChainKind as `POST /sign/${Kind}`]: Value }
}

const mode = optional(literal('mock'))
const health = object({ status: literal('ok'), mode })
/** `missing` names witnesses that don't respond, while enough others do. */
const readiness = object({ status: literal('ready'), mode, missing: optional(list(string())) })

/**
 * The coordinator's HTTP interface (specification §4), by method and path. `query` has the query parameters, `request` the body and
 * `response` the body of a success, both JSON. Every failure is a `Problem`. The SDK imports single schemas, not this table, to keep apps
 * small.
 */
export const endpoints = {
  /** The ways to sign in. */
  'GET /auth': { response: loginProviders },
  /** A full-page navigation. Redirects to the identity provider. */
  'GET /auth/:provider': {
    query: object({ return_to: optional(string()), client_key: optional(hex(CLIENT_KEY_BYTES)) }),
  },
  /** The identity provider redirects the browser here. Redirects to the app, with `sign_in=cancelled` if the user cancelled. */
  'GET /auth/:provider/callback': {
    query: object({ state: string(), code: optional(string()), error: optional(string()) }),
  },
  /** The same for providers that post a form. Redirects to the callback. */
  'POST /auth/:provider/form': { form: object({ state: string() }) },
  /** Opens a session from an ID token that the page got itself. */
  'POST /auth/:provider/token': { request: tokenRequest, response: tokenSession },
  'GET /auth/me': { response: sessionUser },
  'GET /auth/session': { response: sessionInfo },
  'GET /auth/sessions': { response: sessionList },
  'POST /auth/logout': { request: logoutRequest, response: okResponse },
  'GET /wallet/me': { response: walletInfo },
  'GET /wallet/transactions': {
    query: object({ limit: optional(positive), cursor: optional(string()) }),
    response: transactionPage,
  },
  'POST /wallet/provision': { response: walletInfo },
  /** A statement about the wallet's address. Always returns the same slug. */
  'POST /wallet/attest': { request: attestRequest, response: attestAddressResponse },
  'GET /vaults': { response: vaultList },
  /**
   * Responds after reading the policy back from IPFS. The same policy gives the same vault. With `address`, it also restores a vault that the
   * service has lost, even one that today's checks would reject.
   */
  'POST /vaults': { request: createVaultRequest, response: vaultInfo },
  'POST /vaults/:address/attest': { request: attestRequest, response: attestAddressResponse },
  /** Signs a payment by a rule that needs no session. */
  'POST /vaults/:address/sign': { request: signVaultRequest, response: signVaultResponse },
  'GET /vaults/:address/budget': { response: vaultBudgetInfo },
  /** Responds when the revocation is final. A repeated call returns the same slug. */
  'POST /vaults/:address/revoke': { request: revokeRequest, response: object({ slug }) },
  'POST /sign/digest': { request: signDigestRequest, response: signDigestResponse },
  ...(toSignEndpoints((kind) => ({
    request: object({ ...contentSchemas[kind].members, ...walletUse }),
    response: signOffChainResponse,
  })) as unknown as { [Kind in OffChainKind as `POST /sign/${Kind}`]: OffChainEndpoint<Contents[Kind]> }),
  'POST /sign/authorization': {
    request: object({ ...authorization.members, ...stamped }),
    response: signDigestResponse,
  },
  'GET /proof/:slug': { response: proofPayload },
  /** Server-sent events named `proof`, each with a `ProofPayload` as its data. */
  'GET /proof/:slug/events': { headers: object({ 'last-event-id': optional(string()) }), event: proofPayload },
  /** A CAR file: bytes. */
  'GET /proofs/export': { query: object({ cursor: optional(string()) }) },
  /** A trustless IPFS gateway: returns the bytes of the CID. */
  'GET /ipfs/:cid': { query: object({ format: optional(literal('json', 'raw', 'car')) }) },
  /** The enclaves' logs. Each is below `/log/<hash>`, as in c2sp.org/tlog-tiles: `checkpoint` and `tile/…`. */
  'GET /log': { response: logList },
  /** A note: the newest checkpoint that the witnesses cosigned. */
  'GET /log/:hash/checkpoint': {},
  'GET /health': { response: health },
  'GET /health/ready': { response: readiness },
  'GET /health/attestation': { query: object({ nonce: optional(string()) }), response: coordinatorAttestation },
} as const
export type Endpoints = typeof endpoints

/** An endpoint by its method and path, such as `GET /proof/:slug`. */
export type Endpoint = keyof Endpoints

/** The query parameters of an endpoint. */
export type EndpointQuery<Name extends Endpoint> = Endpoints[Name] extends { query: Schema<infer Query> }
  ? Query
  : never

/** The request body of an endpoint. */
export type EndpointRequest<Name extends Endpoint> = Endpoints[Name] extends { request: Schema<infer Request> }
  ? Request
  : never

/** The response body of an endpoint's success. */
export type EndpointResponse<Name extends Endpoint> = Endpoints[Name] extends { response: Schema<infer Response> }
  ? Response
  : never
