import type { Endpoint, Hex, ProofPayload, ProofStatus, SessionUser, WalletInfo } from '@countersign/protocol'
import { offChainKinds } from '@countersign/protocol'
import type { ServiceClientConfig } from '../client/connection.ts'
import type { TestProblem } from './problems.ts'
import type { TestRpcError, TestRpcHandlers, TestTransaction } from './testChain.ts'

export type TestServiceOptions = {
  /** Whether the user starts with a session. Defaults to true. */
  signedIn?: boolean | undefined
  /** Whether the user starts with a wallet. Defaults to true. Otherwise `POST /wallet/provision` creates it. */
  provisioned?: boolean | undefined
  user?: SessionUser | undefined
  /** Defaults to 31337. */
  chainId?: number | undefined
  /** The wallet's balance in wei. Defaults to 10,000 ether. */
  balance?: bigint | undefined
  /** In wei. Defaults to 1 gwei. */
  baseFeePerGas?: bigint | undefined
  /** Each read of a proof advances it one step, from the second read on. Without it, only `advanceProof` does. */
  autoComplete?: boolean | undefined
  /** Code that the wallet may delegate to (EIP-7702). Defaults to none. */
  implementations?: readonly Hex[] | undefined
  /** JSON-RPC methods that the test answers, such as `eth_call` for its contracts. */
  rpc?: TestRpcHandlers | undefined
}

export type TestRoute = (typeof testRoutes)[number]

/** A route of the service (`POST /sign/digest`) or a method of its chain (`eth_sendRawTransaction`). */
export type TestRequest = TestRoute | (string & {})

export type TestService = {
  /** For `new ServiceClient(config)` or `<ServiceProvider config={config}>`. */
  readonly config: ServiceClientConfig
  readonly user: SessionUser
  /** The user's wallet, also before it is provisioned. */
  readonly wallet: WalletInfo
  /** Answers requests to the service's two origins and rejects others. */
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  /** Replaces `globalThis.fetch` for the service's origins. The returned function restores it. */
  install(): () => void
  /** Opens a session. With a client key, as in the `client_key` of a sign-in, every signature needs a stamp of it. */
  signIn(options?: { clientKey?: string | undefined }): void
  signOut(): void
  /** Moves a proof to its next state, or to `to` if the specification allows it. */
  advanceProof(slug: string, to?: ProofStatus): ProofPayload
  /** Moves every pending proof to `complete`. */
  completeProofs(): void
  /** Makes the next such request fail. Several failures are used in turn. */
  failNext(route: TestRoute, failure: TestProblem | 'network'): void
  failNext(rpcMethod: `${'eth' | 'net' | 'web3'}_${string}`, failure: TestRpcError | 'network'): void
  /** The broadcast transactions, in order. */
  readonly transactions: readonly TestTransaction[]
  /** One for each signature, in order. */
  readonly proofs: readonly ProofPayload[]
  /** Every request so far, in order. */
  readonly requests: readonly TestRequest[]
}

export const testRoutes = [
  'GET /auth/me',
  'GET /auth/session',
  'GET /auth/sessions',
  'POST /auth/logout',
  'GET /wallet/me',
  'POST /wallet/provision',
  'GET /wallet/transactions',
  'POST /wallet/attest',
  'GET /vaults',
  'POST /vaults',
  'POST /vaults/:address/attest',
  'POST /vaults/:address/sign',
  'GET /vaults/:address/budget',
  'POST /vaults/:address/revoke',
  'POST /sign/digest',
  ...offChainKinds.map((kind) => `POST /sign/${kind}` as const),
  'POST /sign/authorization',
  'GET /proof/:slug',
] as const satisfies readonly Endpoint[]
