import type { Endpoint, Hex, ProofPayload, ProofStatus, SessionUser, WalletInfo } from '@countersign/protocol'
import { offChainKinds } from '@countersign/protocol'
import type { ServiceClientConfig } from '../client/connection.ts'
import type { TestProblem } from './problems.ts'
import type { TestRpcError, TestRpcHandlers, TestTransaction } from './testChain.ts'

export type TestServiceOptions = {
  /** Whether a session is there from the start (true). */
  signedIn?: boolean | undefined
  /** Whether the user has a wallet from the start (true); without, `POST /wallet/provision` makes it. */
  provisioned?: boolean | undefined
  user?: SessionUser | undefined
  /** 31337. */
  chainId?: number | undefined
  /** What the wallet holds, in wei (10,000 ether). */
  balance?: bigint | undefined
  /** In wei (1 gwei). */
  baseFeePerGas?: bigint | undefined
  /** Each read of a proof moves it on by a step, from the second read on. Without it proofs move only by `advanceProof`. */
  autoComplete?: boolean | undefined
  /** Code that the wallet may delegate to (EIP-7702), as the operator lists it; none, as by default there. */
  implementations?: readonly Hex[] | undefined
  /** JSON-RPC methods that the app answers itself, such as `eth_call` for its contracts. */
  rpc?: TestRpcHandlers | undefined
}

/** The routes that a test service has. */
export type TestRoute = (typeof testRoutes)[number]

/** A request that reached the service (`POST /sign/digest`) or its chain (`eth_sendRawTransaction`). */
export type TestRequest = TestRoute | (string & {})

export type TestService = {
  /** For `new ServiceClient(config)` or `<ServiceProvider config={config}>`. */
  readonly config: ServiceClientConfig
  readonly user: SessionUser
  /** The wallet that the user has, or will have once it is provisioned. */
  readonly wallet: WalletInfo
  /** Answers requests to the two origins of the service; it rejects any other. */
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  /** Puts `fetch` in the place of `globalThis.fetch` for the service's origins only; the returned function takes it out. */
  install(): () => void
  signIn(): void
  signOut(): void
  /** Moves a proof to its next state, or to the given one if the specification lets it go there. */
  advanceProof(slug: string, to?: ProofStatus): ProofPayload
  /** Moves every proof that is under way to `complete`. */
  completeProofs(): void
  /** The next request of this kind fails so; several are used in turn. */
  failNext(route: TestRoute, failure: TestProblem | 'network'): void
  failNext(rpcMethod: `${'eth' | 'net' | 'web3'}_${string}`, failure: TestRpcError | 'network'): void
  /** What was broadcast, in order. */
  readonly transactions: readonly TestTransaction[]
  /** One for each signature, in order. */
  readonly proofs: readonly ProofPayload[]
  /** Every request so far, in order. */
  readonly requests: readonly TestRequest[]
}

export const testRoutes = [
  'GET /auth/me',
  'POST /auth/logout',
  'GET /wallet/me',
  'POST /wallet/provision',
  'GET /wallet/transactions',
  'POST /wallet/attest',
  'GET /vaults',
  'POST /vaults',
  'POST /vaults/:address/attest',
  'POST /sign/digest',
  ...offChainKinds.map((kind) => `POST /sign/${kind}` as const),
  'POST /sign/authorization',
  'GET /proof/:slug',
] as const satisfies readonly Endpoint[]
