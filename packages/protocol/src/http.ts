import type { Approval } from './approval.ts'
import type { Authorization } from './authorization.ts'
import type { MessageContent } from './contents.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import type { Hex } from './hex.ts'
import type { Opening } from './opening.ts'
import {
  type CoordinatorAttestation,
  type LogInfo,
  type LoginProvider,
  type ProofPayload,
  type SessionUser,
  slug,
  type TransactionPage,
  type VaultInfo,
  type vaultList,
  type WalletInfo,
} from './resources.ts'
import { ethereum, type Infer, literal, object } from './schema.ts'
import type { TxMetadata } from './txMetadata.ts'
import type { TypedData } from './typedData.ts'

/** Which of the user's wallets is to sign: their own, unless it names a vault; and who approves that. Another user's is refused. */
export type WalletUse = { wallet?: Hex | undefined; approvals?: readonly Approval[] | undefined }

/** The body of `POST /sign/digest`: a digest, and the transaction that it must be the hash of. */
export type SignDigestRequest = { digest: Hex; txMetadata: TxMetadata }

/** What attesting an address answers. */
export const slugResponse = object({ slug })

/** What `POST /sign/digest` answers. The signature is r ‖ s ‖ v, with a low s and v = 27 or 28. */
export const signDigestResponse = object({ signature: ethereum(65), slug })
export type SignDigestResponse = Infer<typeof signDigestResponse>

export const okResponse = object({ ok: literal(true) })

/**
 * What `POST /sign/message` and `POST /sign/typed-data` answer. Nobody keeps the opening but the caller: without it the proof shows
 * that the wallet signed something, and nothing can show what.
 */
export type SignOffChainResponse = SignDigestResponse & { opening: Opening }

/**
 * The HTTP interface of the coordinator (specification §4), by method and path. `query` holds what may stand behind the path,
 * `request` the body of the call and `response` that of its success, both JSON; every failure is a `Problem`. Types only: an
 * endpoint costs an app no more than its own name.
 */
export type Endpoints = {
  /** The ways to sign in. */
  'GET /auth': { response: { providers: LoginProvider[] } }
  /** A full-page navigation. Redirects to the identity provider. */
  'GET /auth/:provider': { query: { return_to?: string | undefined } }
  /** Where the identity provider sends the browser. Redirects to the app, with `sign_in=cancelled` where the user gave up. */
  'GET /auth/:provider/callback': { query: { state: string; code?: string | undefined; error?: string | undefined } }
  /** The same for providers that post a form. Redirects to the callback. */
  'POST /auth/:provider/form': object
  'GET /auth/me': { response: SessionUser }
  'POST /auth/logout': { response: { ok: true } }
  'GET /wallet/me': { response: WalletInfo }
  'GET /wallet/transactions': {
    query: { cursor?: string | undefined; limit?: number | undefined }
    response: TransactionPage
  }
  'POST /wallet/provision': { response: WalletInfo }
  /** A statement about the address of the wallet: the same slug each time. */
  'POST /wallet/attest': { response: { slug: string } }
  'GET /vaults': { response: Infer<typeof vaultList> }
  /**
   * Answers once the policy was read back from IPFS; the same policy again gives the same vault. With its `address` also one that the
   * service has lost, and could not be made today.
   */
  'POST /vaults': { request: { policy: object; address?: Hex | undefined }; response: VaultInfo }
  'POST /vaults/:address/attest': { response: { slug: string } }
  'POST /sign/digest': { request: SignDigestRequest & WalletUse; response: SignDigestResponse }
  'POST /sign/message': { request: MessageContent & WalletUse; response: SignOffChainResponse }
  'POST /sign/typed-data': { request: TypedData & WalletUse; response: SignOffChainResponse }
  'POST /sign/authorization': { request: Authorization; response: SignDigestResponse }
  'GET /proof/:slug': { response: ProofPayload }
  /** Server-sent events named `proof`, each with a `ProofPayload` as its data. */
  'GET /proof/:slug/events': { event: ProofPayload }
  /** A trustless IPFS gateway: the bytes that the CID names. */
  'GET /ipfs/:cid': { query: { format?: 'json' | 'raw' | 'car' | undefined } }
  /** The logs of the enclaves. Each is below `/log/<hash>` as c2sp.org/tlog-tiles has it: `checkpoint` and `tile/…`. */
  'GET /log': { response: { logs: LogInfo[] } }
  /** A note: the newest checkpoint that the witnesses cosigned. */
  'GET /log/:hash/checkpoint': object
  'GET /health': { response: { status: 'ok'; mode?: 'mock' } }
  /** `missing` names witnesses that do not answer, while enough others do. */
  'GET /health/ready': { response: { status: 'ready'; mode?: 'mock'; missing?: string[] } }
  'GET /health/attestation': { query: { nonce?: string | undefined }; response: CoordinatorAttestation }
}

/** An endpoint by its method and path, such as `GET /proof/:slug`. */
export type Endpoint = keyof Endpoints

/** What may stand behind the path of an endpoint. */
export type EndpointQuery<Name extends Endpoint> = Endpoints[Name] extends { query: infer Query } ? Query : never

/** The body of a call of an endpoint. */
export type EndpointRequest<Name extends Endpoint> = Endpoints[Name] extends { request: infer Request }
  ? Request
  : never

/** The body with which an endpoint answers success. */
export type EndpointResponse<Name extends Endpoint> = Endpoints[Name] extends { response: infer Response }
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
