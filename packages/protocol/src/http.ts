import { approvals } from './approval.ts'
import { authorization } from './authorization.ts'
import { type Contents, contentSchemas, offChainKinds } from './contents.ts'
import type { OffChainKind } from './kinds.ts'
import {
  coordinatorAttestation,
  loginProviders,
  logList,
  okResponse,
  policy,
  proofPayload,
  sessionUser,
  signDigestResponse,
  slug,
  slugResponse,
  transactionPage,
  vaultInfo,
  vaultList,
  walletInfo,
} from './resources.ts'
import {
  anyCase,
  ethereum,
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
import { txMetadata } from './txMetadata.ts'

const walletUse = { wallet: optional(anyCase(20)), approvals: optional(approvals) }

/** Which of the user's wallets is to sign: their own, unless it names a vault; and who approves that. Another user's is refused. */
export type WalletUse = Infer<ObjectSchema<typeof walletUse>>

const digestAndMetadata = { digest: anyCase(32), txMetadata }

/** What `POST /sign/digest` signs: a digest, and the transaction that it must be the hash of. */
export type SignDigestRequest = Infer<ObjectSchema<typeof digestAndMetadata>>

const signDigestRequest = object({ ...digestAndMetadata, ...walletUse })
const createVaultRequest = object({ policy, address: optional(anyCase(20)) })

/**
 * What signing off the chain answers. Nobody keeps the opening but the caller: without it the proof shows
 * that the wallet signed something, and nothing can show what.
 */
const signOffChainResponse = object({ signature: ethereum(65), slug, opening: shownOpening })
export type SignOffChainResponse = Infer<typeof signOffChainResponse>

type OffChainEndpoint<Request> = { request: Schema<Request & WalletUse>; response: typeof signOffChainResponse }

/** A value for each endpoint that signs off the chain. */
export function toSignEndpoints<Value>(toValue: (kind: OffChainKind) => Value) {
  const entries = offChainKinds.map((kind) => [`POST /sign/${kind}`, toValue(kind)])
  return Object.fromEntries(entries) as { [Kind in OffChainKind as `POST /sign/${Kind}`]: Value }
}

const mode = optional(literal('mock'))
const health = object({ status: literal('ok'), mode })
/** `missing` names witnesses that do not answer, while enough others do. */
const readiness = object({ status: literal('ready'), mode, missing: optional(list(string())) })

/**
 * The HTTP interface of the coordinator (specification §4), by method and path. `query` holds what may stand behind the path,
 * `request` the body of the call and `response` that of its success, both JSON; every failure is a `Problem`. Apps pay for the schemas
 * that they name, and not for this table.
 */
export const endpoints = {
  /** The ways to sign in. */
  'GET /auth': { response: loginProviders },
  /** A full-page navigation. Redirects to the identity provider. */
  'GET /auth/:provider': { query: object({ return_to: optional(string()) }) },
  /** Where the identity provider sends the browser. Redirects to the app, with `sign_in=cancelled` where the user gave up. */
  'GET /auth/:provider/callback': {
    query: object({ state: string(), code: optional(string()), error: optional(string()) }),
  },
  /** The same for providers that post a form. Redirects to the callback. */
  'POST /auth/:provider/form': { form: object({ state: string() }) },
  'GET /auth/me': { response: sessionUser },
  'POST /auth/logout': { response: okResponse },
  'GET /wallet/me': { response: walletInfo },
  'GET /wallet/transactions': {
    query: object({ limit: optional(positive), cursor: optional(string()) }),
    response: transactionPage,
  },
  'POST /wallet/provision': { response: walletInfo },
  /** A statement about the address of the wallet: the same slug each time. */
  'POST /wallet/attest': { response: slugResponse },
  'GET /vaults': { response: vaultList },
  /**
   * Answers once the policy was read back from IPFS; the same policy again gives the same vault. With its `address` also one that the
   * service has lost, and could not be made today.
   */
  'POST /vaults': { request: createVaultRequest, response: vaultInfo },
  'POST /vaults/:address/attest': { response: slugResponse },
  'POST /sign/digest': { request: signDigestRequest, response: signDigestResponse },
  ...(toSignEndpoints((kind) => ({
    request: object({ ...contentSchemas[kind].members, ...walletUse }),
    response: signOffChainResponse,
  })) as unknown as { [Kind in OffChainKind as `POST /sign/${Kind}`]: OffChainEndpoint<Contents[Kind]> }),
  'POST /sign/authorization': { request: authorization, response: signDigestResponse },
  'GET /proof/:slug': { response: proofPayload },
  /** Server-sent events named `proof`, each with a `ProofPayload` as its data. */
  'GET /proof/:slug/events': { headers: object({ 'last-event-id': optional(string()) }), event: proofPayload },
  /** A CAR file: bytes. */
  'GET /proofs/export': { query: object({ cursor: optional(string()) }) },
  /** A trustless IPFS gateway: the bytes that the CID names. */
  'GET /ipfs/:cid': { query: object({ format: optional(literal('json', 'raw', 'car')) }) },
  /** The logs of the enclaves. Each is below `/log/<hash>` as c2sp.org/tlog-tiles has it: `checkpoint` and `tile/…`. */
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

/** What may stand behind the path of an endpoint. */
export type EndpointQuery<Name extends Endpoint> = Endpoints[Name] extends { query: Schema<infer Query> }
  ? Query
  : never

/** The body of a call of an endpoint. */
export type EndpointRequest<Name extends Endpoint> = Endpoints[Name] extends { request: Schema<infer Request> }
  ? Request
  : never

/** The body with which an endpoint answers success. */
export type EndpointResponse<Name extends Endpoint> = Endpoints[Name] extends { response: Schema<infer Response> }
  ? Response
  : never
