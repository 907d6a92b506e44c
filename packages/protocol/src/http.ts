import { approvals } from './approval.ts'
import { authorization } from './authorization.ts'
import { messageContent } from './contents.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import {
  coordinatorAttestation,
  loginProviders,
  logList,
  policy,
  proofPayload,
  sessionUser,
  slug,
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
import { typedData } from './typedData.ts'

const walletUse = { wallet: optional(anyCase(20)), approvals: optional(approvals) }

/** Which of the user's wallets is to sign: their own, unless it names a vault; and who approves that. Another user's is refused. */
export type WalletUse = Infer<ObjectSchema<typeof walletUse>>

const digestAndMetadata = { digest: anyCase(32), txMetadata }

/** What `POST /sign/digest` signs: a digest, and the transaction that it must be the hash of. */
export type SignDigestRequest = Infer<ObjectSchema<typeof digestAndMetadata>>

const signDigestRequest = object({ ...digestAndMetadata, ...walletUse })
const signMessageRequest = object({ ...messageContent.members, ...walletUse })
const signTypedDataRequest = object({ ...typedData.members, ...walletUse })
const createVaultRequest = object({ policy, address: optional(anyCase(20)) })

/** What attesting an address answers. */
export const slugResponse = object({ slug })

/** What `POST /sign/digest` answers. The signature is r ‖ s ‖ v, with a low s and v = 27 or 28. */
export const signDigestResponse = object({ signature: ethereum(65), slug })
export type SignDigestResponse = Infer<typeof signDigestResponse>

/**
 * What `POST /sign/message` and `POST /sign/typed-data` answer. Nobody keeps the opening but the caller: without it the proof shows
 * that the wallet signed something, and nothing can show what.
 */
const signOffChainResponse = object({ signature: ethereum(65), slug, opening: shownOpening })
export type SignOffChainResponse = Infer<typeof signOffChainResponse>

export const okResponse = object({ ok: literal(true) })

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
  'POST /sign/message': { request: signMessageRequest, response: signOffChainResponse },
  'POST /sign/typed-data': { request: signTypedDataRequest, response: signOffChainResponse },
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

/** What stands for the `:names` in the path of an endpoint. */
export type PathParameters<Name extends string> = Name extends `${string}/:${infer Parameter}/${infer Rest}`
  ? { [Key in Parameter]: string } & PathParameters<`/${Rest}`>
  : Name extends `${string}/:${infer Parameter}`
    ? { [Key in Parameter]: string }
    : unknown

/** The same as arguments: none for a path without `:names`. */
export type PathArguments<Name extends string> =
  unknown extends PathParameters<Name> ? [] : [parameters: PathParameters<Name>]

/**
 * The method of an endpoint, and its path with the parameters in their places.
 *
 * @example
 * toMethodAndPath('GET /proof/:slug', { slug }) // { method: 'GET', path: '/proof/…' }
 */
export function toMethodAndPath<Name extends Endpoint>(
  endpoint: Name,
  ...[parameters]: PathArguments<Name>
): { method: 'GET' | 'POST'; path: string } {
  const filled = endpoint.replace(/:(\w+)/g, (_, name: string) => {
    const value = (parameters as Record<string, string> | undefined)?.[name] as string
    // Slugs and addresses: anything else could lead to another path.
    if (!/^[\w-]+$/.test(value)) throw new ServiceError<ProtocolErrorCode>('invalid_request', `not a ${name}`)
    return value
  })
  const [method, path] = filled.split(' ') as ['GET' | 'POST', string]
  return { method, path }
}

/** Of the page to return to after a sign-in, in characters. */
export const MAX_RETURN_TO_LENGTH = 2048

/**
 * Whether a text can be the slug of a proof: 16 bytes in base64url. The last character carries two bits only, so one proof
 * never has two slugs.
 */
export function isSlug(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_-]{21}[AQgw]$/.test(text)
}
